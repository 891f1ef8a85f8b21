import AsyncHTTPClient
package import Larder
import LarderFiles
import NIOCore
import NIOHTTP1
import NIOHTTPCompression
import NIOPosix
import NIOSSL

#if canImport(Network)
import Network
#endif

// The one place where errors of AsyncHTTPClient, NIO and the operating system become transport errors.

extension TransportError {
    /// - Parameter phase: How far the exchange had come; nil where that is not known, and what the error says must do.
    package init(ofClient error: any Error, in phase: Phase? = nil) {
        var (code, message) = Self.meaning(of: error)
        // An error's kind does not tell when it happened: TLS may be damaged, and a network go away, at any time.
        if phase == .sending, code.phase == .beforeSending {
            code = .interrupted
            message = "The connection broke before the answer was whole."
        }
        self.init(code, message, phase: phase, cause: error)
    }

    private typealias Meaning = (code: Code, message: String)

    private static func meaning(of error: any Error) -> Meaning {
        switch error {
        case is CancellationError:
            (.cancelled, "The exchange was cancelled.")
        case let error as HTTPClientError:
            meaning(of: error)
        case is NIOConnectionError:
            (.unreachable, "No connection to the server could be made; is the host right, and is the network there?")
        case is SocketAddressError:
            (.unreachable, "The server's name has no address.")
        case let error as ChannelError:
            meaning(of: error)
        case let error as IOError:
            meaning(ofErrno: error.errnoCode)
        case NIOSSLError.uncleanShutdown:
            (.interrupted, "The connection ended without a proper close.")
        case is NIOSSLError, is NIOSSLExtraError, is BoringSSLError:
            (.insecure, "TLS could not be agreed with the server, or its certificate is not trusted.")
        case NIOHTTPDecompression.DecompressionError.limit:
            (.unusableAnswer, "The answer is longer, decompressed, than the client allows.")
        case is NIOHTTPDecompression.DecompressionError, is NIOHTTPDecompression.ExtraDecompressionError:
            (.unusableAnswer, "The answer's compression is damaged.")
        case HTTPParserError.invalidEOFState:
            (.interrupted, "The connection ended within the answer.")
        case is HTTPParserError:
            (.unusableAnswer, "What came back is not HTTP.")
        default:
            meaningOnApple(of: error) ?? (.interrupted, "The exchange failed before the answer was whole.")
        }
    }

    private static func meaning(of error: ChannelError) -> Meaning {
        switch error {
        case .connectPending, .connectTimeout:
            (.unreachable, "The server did not accept the connection in time.")
        default:
            (.interrupted, "The connection broke before the answer was whole.")
        }
    }

    private static func meaning(ofErrno code: CInt) -> Meaning {
        switch NetworkFault(code) {
        case .unreachable:
            (.unreachable, "No connection to the server could be made; is it running, and is the network there?")
        case .silent:
            (.unreachable, "The network gave the server up as silent.")
        case .tooManyFiles:
            (.unreachable, "No connection could be opened: this process or system has too many files open.")
        case .other:
            (.interrupted, "The connection broke before the answer was whole.")
        }
    }

    private static func meaning(of error: HTTPClientError) -> Meaning {
        switch error {
        case .invalidURL, .emptyHost, .emptyScheme, .missingSocketPath:
            return (.unusableRequest, "The endpoint is not a URL that can be sent to; it needs a scheme and a host.")
        case .alreadyShutdown:
            return (.notPrepared, "The HTTP client has been shut down; it must outlive the transport.")
        case .identityCodingIncorrectlyPresent, .contentLengthMissing, .traceRequestWithBody, .bodyLengthMismatch,
            .writeAfterRequestSent, .invalidLocalAddress:
            return (.unusableRequest, "The HTTP client does not send the request as it is.")
        case .deadlineExceeded, .readTimeout, .writeTimeout:
            return (.timedOut, "The server was silent for longer than the HTTP client's own timeout.")
        case .connectTimeout, .getConnectionFromPoolTimeout, .socksHandshakeTimeout, .httpProxyHandshakeTimeout,
            .tlsHandshakeTimeout:
            return (.unreachable, "No connection to the server came about in time.")
        case .invalidProxyResponse, .proxyAuthenticationRequired:
            return (.unreachable, "The proxy did not let the request through.")
        case .redirectLimitReached, .redirectCycleDetected:
            return (.unusableAnswer, "The server redirects in circles.")
        case .cancelled:
            return (.interrupted, "The HTTP client was shut down during the exchange.")
        default:
            break
        }
        // Cases with a payload have no value to be compared with; their short description is free of it.
        return switch error.shortDescription {
        case HTTPClientError.unsupportedScheme("").shortDescription:
            (.unusableRequest, "The endpoint's scheme is neither http nor https.")
        case HTTPClientError.invalidHeaderFieldNames([]).shortDescription,
            HTTPClientError.invalidHeaderFieldValues([]).shortDescription:
            (.unusableRequest, "A header holds what HTTP does not allow.")
        case HTTPClientError.serverOfferedUnsupportedApplicationProtocol("").shortDescription:
            (.insecure, "Client and server could not agree on a protocol within TLS.")
        default:
            (.interrupted, "The connection broke before the answer was whole.")
        }
    }

    #if canImport(Network)
    // Not compiled on Linux, where this was written: the errors of Network.framework, as the client wraps them.
    private static func meaningOnApple(of error: any Error) -> Meaning? {
        switch error {
        case is HTTPClient.NWTLSError:
            (.insecure, "TLS could not be agreed with the server, or its certificate is not trusted.")
        case let error as HTTPClient.NWPOSIXError:
            meaning(ofErrno: error.errorCode.rawValue)
        // Over plain HTTP, and of names, the client hands them on as they are.
        case NWError.dns:
            (.unreachable, "The server's name has no address.")
        case NWError.tls:
            (.insecure, "TLS could not be agreed with the server, or its certificate is not trusted.")
        case NWError.posix(let code):
            meaning(ofErrno: code.rawValue)
        default:
            nil
        }
    }
    #else
    private static func meaningOnApple(of error: any Error) -> Meaning? { nil }
    #endif
}
