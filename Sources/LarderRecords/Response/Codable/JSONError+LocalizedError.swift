public import Foundation

extension JSONError: LocalizedError {
    /// As `description`: the text was written by a program, and a user can do nothing about it.
    public var errorDescription: String? { description }
}
