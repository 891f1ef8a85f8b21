import Crypto
import Foundation
import Larder
import LarderGraphQL
import LarderRecords

/// The table `mutation_records` of AppSync's SDK: what it has yet to send, or was sending.
///
/// `data` is the body of the request, `{"query": …, "variables": …}`; `recordState` is `inQueue`, `inProgress` or
/// `isDone`. The order is that in which the rows were made; the SDK's own, by `timestamp`, follows a clock that may
/// have been set back.
struct AppSyncMutations {
    let database: ForeignDatabase

    init(_ path: String, _ options: ForeignDatabase.Options) throws(ImportError) {
        database = try ForeignDatabase(path, options)
    }

    fileprivate struct Queued {
        var identifier: String
        var state: String
        var hasFile: Bool
        /// Nil where it cannot be read.
        var operation: GraphQLOperation?
    }

    func take(
        _ options: ImportOptions, into partition: Partition?, _ schema: SchemaIndex, _ report: inout ImportReport
    ) async throws(ImportError) {
        for queued in try all() {
            let name = queued.described
            guard let operation = queued.operation else {
                report.omit(.mutation, .unreadable, name)
                continue
            }
            switch queued.state {
            case "inQueue": break
            // A repeat may take effect twice: a user who knows the server must decide.
            case "inProgress":
                report.omit(.mutation, .outcomeUnknown, name)
                continue
            case "isDone":
                report.omit(.mutation, .done, name)
                continue
            default:
                report.omit(.mutation, .unreadable, "\(name), in the state \(queued.state)")
                continue
            }
            if queued.hasFile {
                report.omit(.mutation, .hasFile, name)
            } else if !options.takesMutations {
                report.omit(.mutation, .notAsked, name)
            } else if let fault = Self.fault(of: operation, schema) {
                report.omit(.mutation, .refused, "\(name): \(fault)")
            } else {
                try await queue(operation, Self.id(of: queued.identifier), name, into: partition, &report)
            }
        }
    }

    private func queue(
        _ operation: GraphQLOperation, _ id: MutationID, _ name: String, into partition: Partition?,
        _ report: inout ImportReport
    ) async throws(ImportError) {
        guard let partition else {
            report.mutations.taken += 1
            return
        }
        do throws(LarderError) {
            if report.isDryRun {
                let isKnown = try partition.mutation(id).status() != nil
                if isKnown { report.mutations.present += 1 } else { report.mutations.taken += 1 }
                return
            }
            try await partition.enqueue(operation, options: MutationOptions(id: id))
            report.mutations.taken += 1
        } catch {
            switch error.code.rawValue {
            case "operations.duplicate": report.mutations.present += 1
            case "operations.invalid", LarderError.Code.operation.rawValue, LarderError.Code.variables.rawValue,
                LarderError.Code.syntax.rawValue, LarderError.Code.data.rawValue:
                report.omit(.mutation, .refused, "\(name): \(error.message)")
            default: throw ImportError(.store, "The mutation \(name) cannot be queued: \(error)")
            }
        }
    }

    private func all() throws(ImportError) -> [Queued] {
        var queued: [Queued] = []
        let sql = """
            SELECT recordIdentifier, data, recordState,
                coalesce(s3Bucket, s3Key, s3Region, s3LocalUri, s3MimeType) IS NOT NULL
            FROM mutation_records ORDER BY _id
            """
        try database.forEachRow(sql) { row in
            queued.append(
                Queued(
                    identifier: row.text(0) ?? "", state: row.text(2) ?? "", hasFile: row.integer(3) == 1,
                    operation: row.text(0) == nil ? nil : row.bytes(1).flatMap(Self.operation)))
        }
        return queued
    }

    private static func operation(_ body: [UInt8]) -> GraphQLOperation? {
        guard case .object(let members)? = try? Value(json: body), case .string(let document)? = members["query"] else {
            return nil
        }
        var name: String?
        if case .string(let text)? = members["operationName"] { name = text }
        switch members["variables"] {
        case .object(let variables)?: return GraphQLOperation(document, name: name, variables: variables)
        case .null?, nil: return GraphQLOperation(document, name: name)
        default: return nil
        }
    }

    /// Why a mutation cannot be queued here; nil where it can.
    private static func fault(of operation: GraphQLOperation, _ schema: SchemaIndex) -> String? {
        do {
            let compiled = try CompiledOperation(
                operation: operation.name, in: Document(parsing: operation.document), schema)
            guard compiled.kind == .mutation else { return "it is no mutation" }
            _ = try compiled.bound(operation.variables)
            return nil
        } catch { return "\(error)" }
    }

    /// The same id for the same record of the source, whenever and wherever it is taken: a UUID of version 8, RFC 9562.
    static func id(of identifier: String) -> MutationID {
        let digest = SHA256.hash(data: Array("larder import appsync mutation 1\n\(identifier)".utf8))
        var bytes = Array(digest.prefix(16))
        bytes[6] = bytes[6] & 0x0F | 0x80
        bytes[8] = bytes[8] & 0x3F | 0x80
        return MutationID(UUID(uuid: bytes.withUnsafeBytes { $0.loadUnaligned(as: uuid_t.self) }))
    }
}

extension AppSyncMutations.Queued {
    /// As people find it: the source's identifier, and the operation's name.
    fileprivate var described: String {
        guard let document = operation?.document, let parsed = try? Document(parsing: document),
            let name = parsed.operations.first?.name
        else { return identifier }
        return "\(identifier) (\(name))"
    }
}
