"""What templates call to show a render."""
