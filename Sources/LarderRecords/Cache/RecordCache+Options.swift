package import LarderFiles
import LarderLMDB

extension RecordCache {
    /// What a commit survives besides a killed process, which every commit survives.
    package enum Durability: Sendable, Hashable {
        /// Power loss too, every commit.
        case full
        /// Power loss may take back the last commits, never damage the rest. What a cache needs.
        case withoutMetaSync
    }

    package struct Options: Sendable {
        /// The greatest size in bytes; address space is reserved for it as far as there is any, disk is not.
        package var maximumSize = Self.defaultMaximumSize
        /// The bytes of memory that one answer may take, what it lacks included. What refers to each other can be asked
        /// for along every path, so that a small cache holds answers larger than any memory.
        package var maximumAnswerSize = Self.defaultMaximumAnswerSize
        /// Whether reads look how old what they find is, and note what they used. False only where the cost of that is
        /// measured.
        package var keepsUse = true
        package var durability = Durability.withoutMetaSync
        package var isReadOnly = false
        /// Whether every page is looked at when the cache is opened, and not only after an unclean close.
        package var verifiesAlways = false
        /// Whether opening compares every value with its checksum where it looks at every page. False for a caller that
        /// checks the cache itself: closing it then leaves no stamp where it was not closed cleanly before.
        package var comparesChecksums = true
        /// How long a write may wait for writers of other processes.
        package var lockTimeout = Duration.seconds(5)
        /// How long a call waits while the cache is suspended.
        package var suspensionWait = Duration.zero
        /// After how long without a write the file is stamped as if the cache were closed.
        package var idleDelay = Duration.seconds(2)
        /// Who this is, for the errors of others who wait.
        package var label = "larder"
        /// The place in the program that opens it, for the error of a caller that opens it again in this process.
        package var openedBy = "an unnamed opener"

        /// What time it is, in milliseconds since 1970: noted with the mutations whose answers are stored.
        package var now: @Sendable () -> Int64 = { millisecondsSince1970() }

        /// Told of optimistic layers that cannot be worked out, and so are left out.
        package var layerFailed: @Sendable (LayerFailure) -> Void = { _ in }

        /// Told how long each commit took, from its turn to its end; nil where nothing is to be timed.
        package var committed: (@Sendable (Duration) -> Void)?

        /// A folder: the processes that watch it are told of each commit. Nil where none is to be told.
        package var watchedFolder: String?

        /// How many optimistic layers must be laid for each further one that is laid ahead, before a read asks for it.
        package var layersForEachAhead = 32

        /// By which this layer makes its calls of the system.
        package var files = FileSystem()

        /// A process has a few gigabytes of address space on a phone, of memory less, and no bounds to speak of elsewhere.
        #if os(Linux) || os(macOS)
        package static let defaultMaximumSize = 64 << 30
        package static let defaultMaximumAnswerSize = 1 << 30
        #else
        package static let defaultMaximumSize = 2 << 30
        package static let defaultMaximumAnswerSize = 128 << 20
        #endif

        package init() {}

        var environment: Environment.Options {
            var options = Environment.Options()
            options.mapSize = maximumSize
            options.durability = durability == .full ? .full : .withoutMetaSync
            options.isReadOnly = isReadOnly
            options.verification = verifiesAlways ? .always : .unlessCleanlyClosed
            options.lockTimeout = lockTimeout
            options.lockLabel = label
            options.files = files
            return options
        }
    }
}
