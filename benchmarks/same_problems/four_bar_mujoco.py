"""Rocker angle of a four-bar where its crank stands at 100 degrees, and its slope in the length of the coupler.

MuJoCo has no solver of positions: Newton's method on its own residual and Jacobian of the loop, one degree at a time.
"""

import mujoco
import numpy as np


def rocker(coupler):
    rod = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><worldbody>
      <body name="crank"><joint axis="0 0 1"/>{rod}
        <body name="coupler" pos="1 0 0"><joint axis="0 0 1"/>{rod}</body></body>
      <body name="rocker" pos="3.5 0 0"><joint axis="0 0 1"/>{rod}</body></worldbody>
      <equality><connect body1="coupler" body2="rocker" anchor="{coupler} 0 0"/></equality></mujoco>""")
    model.eq_data[0, :6] = [coupler, 0.0, 0.0, 2.5, 0.0, 0.0]  # the same point, in either body
    data = mujoco.MjData(model)
    data.qpos[1:] = 1.0, 1.5
    turn = []
    for crank in np.deg2rad(np.arange(361.0)):
        data.qpos[0] = crank
        for _ in range(6):
            mujoco.mj_forward(model, data)
            jacobian = data.efc_J.reshape(-1, 3)[:2, 1:]
            data.qpos[1:] -= np.linalg.solve(jacobian, data.efc_pos[:2])
        turn.append(data.qpos[2])
    return turn[100]


h = 1e-5
print(rocker(3.0), (rocker(3.0 + h) - rocker(3.0 - h)) / (2 * h))
