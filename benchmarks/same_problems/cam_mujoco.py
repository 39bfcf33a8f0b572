"""When the flat follower of an eccentric that runs too fast comes back to it, and the slope in the spring's stiffness.

The eccentric is a ball, the follower a box, and a contact a stiff spring. The argument is the step.
"""

import sys

import mujoco


H = float(sys.argv[1])


def comes_back(stiffness):
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><compiler angle="radian"/>
      <option timestep="{H}" gravity="0 0 0"/>
      <default><geom solref="{2 * H} 1" solimp="0.9999 0.9999 0.001" condim="1"/></default>
      <worldbody>
        <body><joint type="hinge" axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="1e6 1e6 1e6"/>
          <geom name="rim" size="0.02" pos="0 -0.005 0"/></body>
        <body pos="0 0.025 0"><joint type="slide" axis="0 1 0" stiffness="{stiffness}" springref="{-10.0 / stiffness}"/>
          <inertial pos="0 0 0" mass="0.2" diaginertia="1 1 1"/>
          <geom name="face" type="box" size="0.03 0.01 0.03"/></body>
      </worldbody></mujoco>""")
    data = mujoco.MjData(model)
    data.qvel[0] = 200.0
    apart, before = False, 0.0
    while data.time < 0.03:
        mujoco.mj_step(model, data)
        gap = mujoco.mj_geomDistance(model, data, 0, 1, 1.0, None)  # of the step's beginning
        apart = apart or gap > 1e-5
        if apart and gap <= 0.0:
            return data.time - H - H * gap / (gap - before)
        before = gap
    return float("nan")


h = 2.0
print(comes_back(2000.0), (comes_back(2000.0 + h) - comes_back(2000.0 - h)) / (2 * h))
