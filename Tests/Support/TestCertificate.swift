package import Foundation
package import NIOSSL

/// A certificate for `localhost` that is made for one test.
package struct TestCertificate: Sendable {
    /// Whether the client of the test knows it.
    package var isTrusted = true
    private let certificate: String
    private let key: String

    /// Whether the machine has what makes it.
    package static let canBeMade = succeeds("openssl", "version")

    package init(in folder: URL) throws {
        certificate = folder.appending(path: "certificate.pem").path
        key = folder.appending(path: "key.pem").path
        let isMade = succeeds(
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc", "-days",
            "2",
            "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate)
        guard isMade else { throw NotMade() }
    }

    private struct NotMade: Error {}

    /// - Parameter protocols: The ones that the server knows, by their names in the handshake.
    package func serverContext(protocols: [String] = []) throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: try NIOSSLCertificate.fromPEMFile(certificate).map { .certificate($0) },
            privateKey: .privateKey(try NIOSSLPrivateKey(file: key, format: .pem)))
        configuration.applicationProtocols = protocols
        return try NIOSSLContext(configuration: configuration)
    }

    package func clientConfiguration() throws -> TLSConfiguration {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.trustRoots = .certificates(try NIOSSLCertificate.fromPEMFile(certificate))
        return configuration
    }
}
