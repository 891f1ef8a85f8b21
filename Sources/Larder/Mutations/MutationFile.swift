public import LarderGraphQL
import LarderOperations

/// A file that goes with a mutation: the mutation is sent when the file's upload is done, with the object's location in
/// its variables.
public struct MutationFile: Sendable {
    /// The upload, in the same partition.
    package var upload: TransferID
    /// Where the location stands: a variable, or a field of an input object in it, such as `input.photo`.
    package var variable: String
    /// What stands there, of the object's location and its media type.
    package var value: @Sendable (_ location: ObjectLocation, _ contentType: String?) -> Value

    /// - Parameters:
    ///   - upload: The upload for which the mutation waits.
    ///   - variable: The place in the variables, such as `input.file`.
    ///   - value: AppSync's `S3ObjectInput` unless given: `bucket`, `key` and `region`, and `mimeType` where the upload
    ///     has one.
    public init(
        _ upload: Transfer, in variable: String,
        value: (@Sendable (_ location: ObjectLocation, _ contentType: String?) -> Value)? = nil
    ) {
        self.upload = upload.id
        self.variable = variable
        self.value = value ?? Self.s3Object
    }

    /// The shape of AppSync's input type for an object of S3.
    private static let s3Object: @Sendable (ObjectLocation, String?) -> Value = { location, contentType in
        var members: [String: Value] = ["bucket": .string(location.bucket), "key": .string(location.key)]
        if let region = location.region { members["region"] = .string(region) }
        if let contentType { members["mimeType"] = .string(contentType) }
        return .object(members)
    }
}

extension PartitionCore {
    /// An operation with the locations of its files in its variables.
    ///
    /// - Throws: `.unknownTransfer`; `.invalidTransfer` where one is no upload; `.variables` where a file has no place.
    func complete(
        _ operation: GraphQLOperation, with files: [MutationFile]
    ) throws(LarderError) -> GraphQLOperation {
        guard !files.isEmpty else { return operation }
        var variables = Value.object(operation.variables)
        let table = try operationsStore.database().transfers
        for file in files {
            let found: StoredTransfer?
            do { found = try table.find(file.upload.uuid) } catch { throw LarderError(error) }
            guard let found else {
                throw LarderError(.unknownTransfer, "There is no transfer \(file.upload), or it was forgotten")
            }
            guard found.kind == .upload else {
                throw LarderError(.invalidTransfer, "Transfer \(file.upload) is no upload")
            }
            let path = file.variable.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
            variables = try variables.replacing(
                path[...], of: file.variable, with: file.value(found.location, found.contentType))
        }
        guard case .object(let members) = variables else { return operation }
        return GraphQLOperation(operation.document, name: operation.name, variables: members)
    }
}

extension Value {
    /// The value with another one at a path. Objects on the way are made where there is nothing, or null.
    fileprivate func replacing(
        _ path: ArraySlice<String>, of variable: String, with value: Value
    ) throws(LarderError) -> Value {
        guard let name = path.first else { return value }
        var members: [String: Value]
        switch self {
        case .object(let found): members = found
        case .null: members = [:]
        default:
            throw LarderError(.variables, "A file cannot stand at \(variable): what is there is no input object")
        }
        guard !name.isEmpty else {
            throw LarderError(.variables, "\"\(variable)\" names no variable; write it as input.photo")
        }
        members[name] = try (members[name] ?? .null).replacing(path.dropFirst(), of: variable, with: value)
        return .object(members)
    }
}
