"""Forces: inertia, the canonical equations, impact, simulation and its replay, statics, reactions."""
