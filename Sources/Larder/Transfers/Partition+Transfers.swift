extension Partition {
    /// The files on their way to and from object storage.
    public var transfers: Transfers { Transfers(core: core) }
}
