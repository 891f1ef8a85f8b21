package import Larder
package import LarderRecords
package import NIOCore

/// A protocol for subscriptions on a WebSocket: what its messages look like, and what they mean.
package protocol SubscriptionDialect: Sendable {
    /// The first message, which introduces the client.
    func greeting() async throws(TransportError) -> [UInt8]

    /// The messages that carry out commands, in their order.
    func messages(for commands: [SubscriptionLine.Command]) async throws(TransportError) -> [[UInt8]]

    /// What a message of the server's leads to.
    ///
    /// - Throws: What ends the connection.
    func reaction(to message: JSONMembers) throws(TransportError) -> DialectReaction

    /// What it means that the server has closed the socket.
    func meaning(of end: WebSocketClosed) -> TransportError
}

/// What a message of the server's leads to.
package struct DialectReaction: Sendable {
    /// What is sent at once.
    package var replies: [[UInt8]] = []
    /// What the line is told.
    package var messages: [SubscriptionLine.Message] = []
    /// How long the server may be silent from now on, where it says so.
    package var silence: Duration?

    package init(_ messages: SubscriptionLine.Message...) { self.messages = messages }

    fileprivate mutating func append(_ other: DialectReaction) {
        replies += other.replies
        messages += other.messages
        silence = other.silence ?? silence
    }
}

extension SubscriptionDialect {
    /// Opens a socket and speaks this protocol on it, until the line's commands end.
    package func carry(
        _ line: SubscriptionLine, over connection: WebSocketConnection, on group: any EventLoopGroup,
        openedBy deadline: SuspendingClock.Instant
    ) async throws(TransportError) {
        do {
            try await connection.run(on: group, openedBy: deadline) { messages, writer in
                try await self.converse(line, &messages, writer, openedBy: deadline)
            }
        } catch is WebSocketFinished {
            return
        } catch let error as TransportError {
            throw error
        } catch let end as WebSocketClosed {
            throw meaning(of: end)
        } catch {
            throw TransportError(ofClient: error)
        }
    }

    private func converse(
        _ line: SubscriptionLine, _ messages: inout WebSocketConnection.Messages, _ writer: WebSocketConnection.Writer,
        openedBy deadline: SuspendingClock.Instant
    ) async throws {
        // A server may refuse the connection before it has heard anything: what it says is read all the same.
        _ = await writer.write([try await greeting()])
        let (isOpen, opening) = AsyncStream.makeStream(of: Void.self)
        let watchdog = writer.end(
            TransportError(.timedOut, "The server did not take the connection up in time."), at: deadline)
        defer { watchdog.cancel() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            group.addTask {
                for await _ in isOpen { break }
                // To read commands in a cancelled task would end them for the next connection, too.
                guard !Task.isCancelled else { return }
                await self.send(line.commands, writer)
            }
            while let together = try await messages.next() {
                guard try await take(together, line, writer) else { continue }
                watchdog.cancel()
                opening.finish()
            }
        }
    }

    /// Sends what the commands ask, and ends the connection with them. A connection that breaks tells its reader so.
    private func send(
        _ commands: AsyncStream<[SubscriptionLine.Command]>, _ writer: WebSocketConnection.Writer
    ) async {
        do throws(TransportError) {
            for await together in commands {
                guard await writer.write(try await messages(for: together)) else { return }
            }
        } catch { return await writer.end(error) }
        await writer.end(WebSocketFinished(), sayingGoodbye: true)
    }

    /// Takes messages that came together: what they lead to is sent together, and told together.
    ///
    /// - Returns: Whether the server has taken the connection up by one of them.
    private func take(
        _ messages: [WebSocketMessage], _ line: SubscriptionLine, _ writer: WebSocketConnection.Writer
    ) async throws -> Bool {
        var reaction = DialectReaction()
        var fault: TransportError?
        do throws(TransportError) {
            for message in messages { reaction.append(try self.reaction(to: message)) }
        } catch { fault = error }
        if let silence = reaction.silence { try await writer.setSilence(silence) }
        if !reaction.replies.isEmpty { _ = await writer.write(reaction.replies) }
        if !reaction.messages.isEmpty { await line.take(reaction.messages) }
        // What came before it counts.
        if let fault { throw fault }
        return reaction.messages.contains { if case .opened = $0 { true } else { false } }
    }

    private func reaction(to message: WebSocketMessage) throws(TransportError) -> DialectReaction {
        switch message {
        case .text(let text):
            let members: JSONMembers
            do { members = try JSONMembers(Array(text.readableBytesView)) } catch {
                throw TransportError(
                    .unusableAnswer, "The server sent a message that is no JSON object.", cause: error)
            }
            return try reaction(to: members)
        case .alive: return DialectReaction(.alive)
        case .silent: return DialectReaction(.expiring(after: .zero))
        }
    }
}
