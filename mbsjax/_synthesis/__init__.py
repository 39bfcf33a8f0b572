"""Which dimensions would do better: tasks, goals and conditions, searches, robust designs."""
