package import Foundation
import Larder

/// A URL that an argument says, or a file that the argument names as `@FILE`.
package enum URLArgument {
    /// A URL that is an argument has no query, which may be a secret: the list of processes shows arguments to every
    /// user. One in a file may have a query.
    ///
    /// - Parameters:
    ///   - role: What it is for: "The endpoint".
    ///   - remedy: Where a user and a password are to be said instead.
    package static func http(_ argument: String, _ role: String, remedy: String) throws(Failure) -> URL {
        let isInFile = argument.hasPrefix("@")
        let text =
            isInFile
            ? try InputFile(role: role, path: String(argument.dropFirst())).text()
                .trimmingCharacters(in: .whitespacesAndNewlines)
            : argument
        let shown = URLText.hidingQuery(ofURL: URLText.hidingUser(ofURL: text))
        guard let url = URL(string: text), let scheme = url.scheme?.lowercased(),
            ["http", "https"].contains(scheme), url.host()?.isEmpty == false
        else { throw Failure(usage: "\(role) \(shown) is no http or https URL.") }
        guard !url.namesUser else {
            throw Failure(
                usage:
                    "\(role) \(shown) has a user or a password in it, which would not be sent. Take them out; \(remedy)"
            )
        }
        guard isInFile || url.query(percentEncoded: true) == nil else {
            throw Failure(
                usage: "The query of \(shown) may be a secret, and the list of processes would show it; write the URL "
                    + "into a file, and give @FILE instead")
        }
        return url
    }
}
