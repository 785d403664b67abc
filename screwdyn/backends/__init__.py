"""Back-ends, which evaluate quantities. Each is one folder or file with three steps: plan, emit, call."""
