/// Where it is kept what layers do, until they are laid.
package protocol LayerSource: AnyObject, Sendable {
    /// What layers do now, in their order, all of it at one moment.
    func contents(of layers: [OptimisticLayer]) throws(RecordError) -> [LayerFinding]
}

/// What a layer does by the time that it is laid.
package enum LayerFinding: Sendable {
    /// As it was when it was made known what the layer touches.
    case same(@Sendable () throws(RecordError) -> OptimisticLayer.Content)
    /// Something else, which may touch something else.
    case changed(@Sendable () throws(RecordError) -> OptimisticLayer.Content)
    /// Nothing: the mutation has ended. If it took effect, a snapshot that is taken from now on knows of it.
    case gone
}

/// The snapshot under the layers may be older than what was found out of them: it has to be read once more.
struct OutdatedLayers: Error {}
