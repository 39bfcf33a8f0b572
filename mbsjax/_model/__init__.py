"""What a user writes down: bodies, joints, contacts, profiles, cams, gauges, forces, and the mechanism of them all."""
