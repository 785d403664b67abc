"""What carries a quantity out. Each back-end is one folder with one interface: plan, emit, call."""
