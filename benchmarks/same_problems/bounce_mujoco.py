"""Height of a ball a second after it fell from a height of 1 and bounced without loss, and its slope in that height.

A contact is a stiff spring without damping (a negative `solref`); the argument is the step.
"""

import sys

import mujoco


H = float(sys.argv[1])
MODEL = mujoco.MjModel.from_xml_string(f"""<mujoco>
  <option timestep="{H}" integrator="RK4" gravity="0 0 -9.81"/>
  <default><geom solref="-{0.1 / H**2} 0" solimp="0.9999 0.9999 0.001"/></default>
  <worldbody><geom type="plane" size="1 1 1"/>
    <body><joint type="slide" axis="0 0 1"/><geom size="0.1" mass="1"/></body></worldbody></mujoco>""")


def after_a_second(height):
    data = mujoco.MjData(MODEL)
    data.qpos[0] = 0.1 + height
    mujoco.mj_step(MODEL, data, nstep=round(1.0 / H))
    return data.qpos[0] - 0.1


h = 1e-3
print(after_a_second(1.0), (after_a_second(1.0 + h) - after_a_second(1.0 - h)) / (2 * h))
