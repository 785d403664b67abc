"""What everything stands on: errors, types, numbers that may be expressions, arrays that results go to."""
