"""Which dimensions matter: studies, distributions, derivatives, sampling, campaigns, allocation, the report."""
