// The servers that programs are tested with serve our own tests too.
@_exported public import LarderTesting
