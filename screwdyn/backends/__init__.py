"""Back-ends, which evaluate quantities. Each is one folder with three steps: plan, emit, call."""
