"""What a robot is made of: inertias, joints, links, and the frozen tree they form."""
