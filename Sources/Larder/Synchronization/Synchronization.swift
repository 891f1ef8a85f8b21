public import Foundation
import LarderRecords

/// What keeps the objects of a type as they are at the server: a delta query, such as AppSync's `sync` queries.
///
/// ```swift
/// let todos = Synchronization(GraphQLOperation("""
///     query Sync($limit: Int, $nextToken: String, $lastSync: AWSTimestamp) {
///       syncTodos(limit: $limit, nextToken: $nextToken, lastSync: $lastSync) {
///         items { id title } nextToken startedAt
///       }
///     }
///     """))
/// try await app.sync(todos)
/// ```
public struct Synchronization: Sendable, Hashable {
    /// A query of one field, whose arguments `lastSync` and `nextToken` are variables, and that is asked for `items`,
    /// `nextToken` and `startedAt`. The type of the items has versions.
    public var operation: GraphQLOperation
    /// For how long the server tells of a change (AppSync's `DeltaSyncTableTTL`). Where more time has passed, everything
    /// is walked through, and what the server does not have any more is removed.
    public var deltaLifetime = Duration.seconds(30 * 60)
    /// How many objects are asked for at a time, where the operation has a variable for it and leaves it out; AppSync
    /// gives 1,000 at most.
    public var pageSize = 1_000
    /// How many pages one call may fetch; the next call goes on with the page after. Nil for all.
    public var maximumPageCount: Int?
    /// Headers of the requests.
    public var headers: [GraphQLRequest.Header] = []
    /// How long the server may take for one page.
    public var timeout = Duration.seconds(30)

    /// A synchronization with a delta table of half an hour, in pages of 1,000.
    public init(_ operation: GraphQLOperation) { self.operation = operation }
}

/// What a synchronization did.
public struct SyncReport: Sendable, Hashable {
    /// How many pages came.
    public internal(set) var pageCount = 0
    /// How many objects were on them.
    public internal(set) var objectCount = 0
    /// Whether everything was walked through, and not only what had changed.
    public internal(set) var isBase = false
    /// Whether the end was reached; otherwise the next call goes on.
    public internal(set) var isFinished = false
    /// Up to when everything is known, by the server's clock; nil before the first walk has reached its end.
    public var startedAt: Date? { milliseconds.map(Date.init(milliseconds:)) }
    /// The same, as the server says it.
    package internal(set) var milliseconds: Int64?
}

/// How far a synchronization has come, as the cache knows it.
package struct SyncStatus: Sendable, Hashable {
    /// The field with its arguments, except the arguments that choose a page.
    package let name: String
    /// As ``SyncReport/startedAt``.
    package var startedAt: Date? { milliseconds.map(Date.init(milliseconds:)) }
    /// The same, as the server says it.
    package let milliseconds: Int64?
    /// How many pages a walk has stored that has not reached its end; nil where none is under way.
    package let openPageCount: Int?
}

extension Partition {
    /// How far all synchronizations of the partition have come, in ascending order of their names.
    package func synchronizations() throws(LarderError) -> [SyncStatus] {
        do {
            return try core.cache.positions().values.sorted { $0.name < $1.name }.map {
                SyncStatus(name: $0.name, milliseconds: $0.startedAt, openPageCount: $0.walk?.pageCount)
            }
        } catch { throw LarderError.parking(error) }
    }
}

extension Date {
    fileprivate init(milliseconds: Int64) { self.init(timeIntervalSince1970: Double(milliseconds) / 1_000) }
}
