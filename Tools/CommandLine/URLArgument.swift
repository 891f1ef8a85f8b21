package import Foundation
import Larder

/// A URL that an argument says.
package enum URLArgument {
    /// - Parameters:
    ///   - role: What it is for: "The endpoint".
    ///   - remedy: Where a user and a password are to be said instead.
    package static func http(_ text: String, _ role: String, remedy: String) throws(Failure) -> URL {
        let shown = URLText.hidingUser(ofURL: text)
        guard let url = URL(string: text), let scheme = url.scheme?.lowercased(),
            ["http", "https"].contains(scheme), url.host()?.isEmpty == false
        else { throw Failure(usage: "\(role) \(shown) is no http or https URL.") }
        guard !url.namesUser else {
            throw Failure(
                usage:
                    "\(role) \(shown) has a user or a password in it, which would not be sent. Take them out; \(remedy)"
            )
        }
        return url
    }
}
