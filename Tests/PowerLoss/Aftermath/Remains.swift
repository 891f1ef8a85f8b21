package import Foundation

/// A folder as a power cut has left it, to be looked into.
package struct Remains: Sendable {
    /// Where it is now.
    package let root: URL
    /// Where it was recorded.
    package let recordedRoot: String
    /// Its files by the numbers that they bore when they were recorded: paths from the root.
    package let paths: [UInt64: String]
    /// What the load had marked until then.
    package let marks: [String]
    /// Whether nothing was lost.
    package let isAll: Bool
    /// How many entries of the recording had been played.
    package let place: Int

    package var store: URL { root.appending(path: "store") }
    /// The marks, each as its words.
    package var words: [[String]] { marks.map { $0.split(separator: " ").map(String.init) } }
}
