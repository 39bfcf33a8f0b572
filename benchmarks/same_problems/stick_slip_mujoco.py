"""Period of a box that a spring holds on a moving belt, and its slope in the speed of the belt.

Dry friction is that of a tendon between belt and box, of a force given by hand: static while they hardly slide. A
period is that between two passages of the place where spring and sliding friction balance. The argument is the step.
"""

import sys

import mujoco


H, LOAD = float(sys.argv[1]), 9.81
MODEL = mujoco.MjModel.from_xml_string(f"""<mujoco><option timestep="{H}" gravity="0 0 0" tolerance="1e-14"/>
  <worldbody>
    <body><joint name="belt" type="slide" axis="1 0 0"/><inertial pos="0 0 0" mass="1e9" diaginertia="1 1 1"/></body>
    <body><joint name="box" type="slide" axis="1 0 0" stiffness="100"/>
      <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>
  </worldbody>
  <tendon><fixed frictionloss="1" solreffriction="{2 * H} 1" solimpfriction="0.9999 0.9999 0.001">
    <joint joint="box" coef="1"/><joint joint="belt" coef="-1"/></fixed></tendon></mujoco>""")


def period(speed):
    data = mujoco.MjData(MODEL)
    data.qvel[:] = speed
    place, passed, before = 0.25 * LOAD / 100.0, [], 0.0
    while data.time < 4.0:
        sticks = abs(data.qvel[1] - data.qvel[0]) < 1e-3 * speed
        MODEL.tendon_frictionloss[0] = (0.4 if sticks else 0.25) * LOAD
        mujoco.mj_step(MODEL, data)
        if before > place >= data.qpos[1]:
            passed.append(data.time + H * (place - data.qpos[1]) / (data.qpos[1] - before))
        before = data.qpos[1]
    return (passed[4] - passed[0]) / 4


h = 1e-4
print(period(0.1), (period(0.1 + h) - period(0.1 - h)) / (2 * h))
