// LarderHTTP
