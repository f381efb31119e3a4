"""Make and carry out changes of intent."""
