import Larder
import LarderFiles
import LarderLMDB
import LarderOperations
import LarderRecords

extension Failure {
    /// The one place where errors of the layers below become a tool's, with their exit status.
    package init(_ error: any Error) {
        switch error {
        case let failure as Failure: self = failure
        case let error as LarderError: self.init(error)
        case let error as RecordError: self.init(error)
        case let error as OperationsError:
            self.init(code: error.code.rawValue, message: error.message, exit: ExitStatus(error.code))
        case let error as TransportError:
            self.init(code: error.code.rawValue, message: error.message, exit: .failure)
        case let error as ObjectError:
            self.init(code: error.code.rawValue, message: error.message, exit: .failure)
        case let error as JSONError: self.init(.file, .usage, error.description)
        default: self.init(.unexpected, .failure, "\(error)")
        }
    }

    /// Runs calls of the layers below, whose errors become the tool's.
    package static func typed<Result>(_ body: () throws -> Result) throws(Failure) -> Result {
        do { return try body() } catch { throw Failure(error) }
    }

    private init(code: String, message: String, exit: ExitStatus) {
        self.code = code
        self.message = message
        self.exit = exit
    }

    private init(_ error: RecordError) {
        var message = error.message
        if let path = error.path, !path.components.isEmpty { message += ", at \(path)" }
        self.init(code: error.code.rawValue, message: message + Self.reason(error.cause), exit: ExitStatus(error.code))
    }

    private init(_ error: LarderError) {
        let cause = error.cause
        if let cause = cause as? RecordError, cause.code.rawValue == error.code.rawValue {
            self.init(cause)
        } else {
            var exit = ExitStatus(error.code)
            if let cause = cause as? OperationsError, cause.code.rawValue == error.code.rawValue {
                exit = ExitStatus(cause.code)
            }
            self.init(code: error.code.rawValue, message: error.message, exit: exit)
            if let transport = cause as? TransportError, let status = transport.status {
                details.append(("status", .int(status)))
            }
        }
        if error.code == .miss {
            if !error.missing.isEmpty { message += ": " + Self.list(error.missing.map(\.description)) }
            details.append(("missing", .array(error.missing.map(JSONText.init))))
        }
        if !error.errors.isEmpty {
            message += ": " + Self.list(error.errors.map(\.description))
            details.append(("errors", .array(error.errors.map(JSONText.init))))
        }
    }

    /// What the layer below said, where the message above leaves it open.
    private static func reason(_ cause: (any Error)?) -> String {
        switch cause {
        case let cause as JSONError: ": \(cause)"
        case let cause as FileError: " (\(cause.path))"
        case let cause as LMDBError: cause.path.map { " (\($0))" } ?? ""
        default: ""
        }
    }

    private static func list(_ items: [String]) -> String {
        let shown = items.prefix(20).joined(separator: ", ")
        return items.count > 20 ? shown + " and \(items.count - 20) more" : shown
    }
}

extension ExitStatus {
    fileprivate init(_ code: OperationsError.Code) {
        self =
            switch code {
            case .notFound, .unknownEnvironment, .unknownPartition: .miss
            // A backup is a file that an argument names.
            case .invalid, .unknownTemporaryID, .damagedBackup: .usage
            case .damaged, .damagedRow, .migrationMissing: .damaged
            case .wrongState, .notWritable, .unfinished, .newerFormat, .pending, .unsentWork, .uploadsLeft,
                .unknownSchema,
                .foreignBackup, .environmentChanged, .environmentInUse, .occupied, .otherPartition, .protected,
                .foreign,
                .migrationChanged:
                .refused
            default: .failure
            }
    }

    fileprivate init(_ code: LarderError.Code) {
        self =
            switch code {
            case .miss, .deleted, .noEnvironment: .miss
            case .schema, .syntax, .operation, .variables, .data, .environment: .usage
            default: .failure
            }
    }

    fileprivate init(_ code: RecordError.Code) {
        self =
            switch code {
            case .responseMalformed, .responseMismatch, .schemaMismatch, .tooLarge: .usage
            case .damaged: .damaged
            case .notWritable, .futureFormat, .olderFormat: .refused
            default: .failure
            }
    }
}
