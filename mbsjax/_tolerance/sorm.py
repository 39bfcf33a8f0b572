"""The second-order reliability method: probabilities from the curvature of a limit at its design points."""

import numpy as np
import scipy

from .design_points import Limit, states
from .study import Study


def sorm(study: Study, limit: Limit, u: np.ndarray) -> tuple[float, float]:
    """The probability beyond a design point with the curvature of the limit there: Breitung's, and with the correction
    of Hohenbichler and Rackwitz."""
    beta = float(np.linalg.norm(u))
    kappa = curvatures(study, limit, u)
    ratio = np.exp(scipy.stats.norm.logpdf(beta) - scipy.special.log_ndtr(-beta))
    found = []
    for b in (beta, ratio):
        bent = 1 + b * kappa
        found.append(float(scipy.special.ndtr(-beta) / np.sqrt(np.prod(bent))) if np.all(bent > 1e-3) else np.nan)
    return found[0], found[1]


def curvatures(study: Study, limit: Limit, u: np.ndarray) -> np.ndarray:
    """The main curvatures of a limit at a design point, positive where it bends away from the medians; NaN at a kink.
    Central differences, of fourth order, of exact gradients."""
    d = len(u)
    if d == 1:
        return np.zeros(0)
    away = 0.02 * np.array([1.0, -1.0, 2.0, -2.0])
    at = u + (away[:, None, None] * np.eye(d)).reshape(-1, d)
    _, g = states(study, [limit] * (4 * d + 1), np.concatenate([u[None], at]), np.ones(4 * d + 1))
    slopes = g[1:].reshape(4, d, d)
    near, far = (slopes[0] - slopes[1]) / 0.04, (slopes[2] - slopes[3]) / 0.08
    if not np.abs(near - far).max() < 0.1 * (np.abs(far).max() + np.linalg.norm(g[0])):
        return np.full(d - 1, np.nan)
    H = (4 * near - far) / 3
    tangent = scipy.linalg.null_space(u[None])
    return np.linalg.eigvalsh(tangent.T @ (H + H.T) @ tangent / 2) / np.linalg.norm(g[0])
