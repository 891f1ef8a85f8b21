import Foundation
import NIOCore

/// One connection over a faulty wire: its exchanges one after the other, as a client makes them that does not pipeline.
/// All of it is on one event loop.
final class WireConnection {
    /// A request or an answer, as far as it has come.
    private struct Message {
        var head = ByteBuffer()
        /// Of all of it; nil until the head is whole.
        var length: Int?
        var passed = 0

        var isWhole: Bool { length.map { passed >= $0 } ?? false }
    }

    /// What goes one way.
    private struct Stream {
        var message = Message()
        /// From which byte on what is done; nil once it is, or where nothing is.
        var fault: (offset: Int, fault: FaultyWire.Fault)?
        /// Nothing goes this way any more.
        var isSilent = false
        /// What is to go later: so many bytes in a millisecond, or all at once when the time has come.
        var held = ByteBuffer()
        var isHeld = false
        var rate: Int?
        /// Whoever sends it is gone.
        var isOver = false
    }

    private let client: any Channel
    private let server: any Channel
    private let plan: FaultyWire.Planner
    private var streams: [FaultyWire.Side: Stream] = [.request: Stream(), .answer: Stream()]
    /// What is done to the answer that is to come.
    private var planned: FaultyWire.Plan?
    private var isHeadRequest = false

    init(client: any Channel, server: any Channel, plan: @escaping FaultyWire.Planner) {
        (self.client, self.server, self.plan) = (client, server, plan)
    }

    private subscript(side: FaultyWire.Side) -> Stream {
        get { streams[side] ?? Stream() }
        set { streams[side] = newValue }
    }

    private func target(_ side: FaultyWire.Side) -> any Channel { side == .request ? server : client }

    // MARK: Messages

    func take(_ bytes: ByteBuffer, _ side: FaultyWire.Side) {
        var bytes = bytes
        while bytes.readableBytes > 0, !self[side].isSilent {
            if side == .request, self[side].message.isWhole {
                self[.request].message = Message()
                self[.answer].message = Message()
            }
            if self[side].message.length == nil {
                self[side].message.head.writeBuffer(&bytes)
                guard let rest = endHead(side) else { return }
                bytes = rest
                let head = self[side].message.head
                pass(head, side)
            } else {
                let left = (self[side].message.length ?? 0) - self[side].message.passed
                // An answer whose length is not said ends with the connection.
                let count = left > 0 ? min(left, bytes.readableBytes) : bytes.readableBytes
                guard let next = bytes.readSlice(length: count) else { return }
                pass(next, side)
            }
        }
    }

    /// Once a head is whole: finds out how long the message is, and what is to be done to it.
    ///
    /// - Returns: What follows the head; nil where it is not whole.
    private func endHead(_ side: FaultyWire.Side) -> ByteBuffer? {
        var bytes = self[side].message.head
        let text = String(decoding: bytes.readableBytesView, as: UTF8.self)
        guard let end = text.utf8.firstRange(of: "\r\n\r\n".utf8) else { return nil }
        let length = text.utf8.distance(from: text.utf8.startIndex, to: end.upperBound)
        guard let head = bytes.readSlice(length: length) else { return nil }
        let lines = String(decoding: head.readableBytesView, as: UTF8.self).split(separator: "\r\n")
        let said = lines.first { $0.lowercased().hasPrefix("content-length:") }?.split(separator: ":").last
        var body = said.flatMap { Int($0.filter { $0 != " " }) } ?? 0
        if side == .request {
            isHeadRequest = text.hasPrefix("HEAD ")
            planned = plan(lines.joined(separator: "\n"))
        } else if isHeadRequest {
            body = 0
        }
        self[side].message.head = head
        self[side].message.length = length + body
        if let plan = planned, plan.side == side {
            planned = nil
            self[side].fault = (plan.place.offset(head: length, body: body), plan.fault)
        }
        return bytes
    }

    // MARK: Bytes

    /// Passes bytes of a message, and does what is to be done where it is.
    private func pass(_ bytes: ByteBuffer, _ side: FaultyWire.Side) {
        var bytes = bytes
        let start = self[side].message.passed
        self[side].message.passed += bytes.readableBytes
        if let (offset, fault) = self[side].fault, (start..<start + bytes.readableBytes).contains(offset) {
            self[side].fault = nil
            if let before = bytes.readSlice(length: offset - start) { write(before, side) }
            begin(fault, &bytes, side)
        }
        write(bytes, side)
    }

    /// - Parameter bytes: Those from the fault's on.
    private func begin(_ fault: FaultyWire.Fault, _ bytes: inout ByteBuffer, _ side: FaultyWire.Side) {
        // Where it is closed from now on, it breaks: the server takes the end of a request for its whole otherwise.
        (server as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0)).whenComplete { _ in }
        switch fault {
        case .cut:
            silence()
            close(after: target(side).writeAndFlush(ByteBuffer()))
        case .stall: self[side].isSilent = true
        case .delay(let time):
            self[side].isHeld = true
            later(time) { connection in
                connection[side].isHeld = false
                connection.release(side)
            }
        case .corrupt:
            if let byte = bytes.getInteger(at: bytes.readerIndex, as: UInt8.self) {
                bytes.setInteger(byte ^ 0x20, at: bytes.readerIndex)
            }
        case .throttle(let rate):
            self[side].rate = rate
            later(.milliseconds(1)) { $0.release(side) }
        case .answer(let refusal):
            silence()
            close(after: client.writeAndFlush(ByteBuffer(string: refusal.text(hasBody: !isHeadRequest))))
        }
    }

    private func write(_ bytes: ByteBuffer, _ side: FaultyWire.Side) {
        guard bytes.readableBytes > 0, !self[side].isSilent else { return }
        if self[side].isHeld || self[side].rate != nil {
            self[side].held.writeImmutableBuffer(bytes)
        } else {
            target(side).writeAndFlush(bytes, promise: nil)
        }
    }

    /// Lets go what was held, all of it or as much as may go in a millisecond.
    private func release(_ side: FaultyWire.Side) {
        let count = min(self[side].rate ?? .max, self[side].held.readableBytes)
        if let bytes = self[side].held.readSlice(length: count), count > 0 {
            target(side).writeAndFlush(bytes, promise: nil)
        }
        if self[side].isOver, self[side].held.readableBytes == 0 {
            target(side).close(promise: nil)
        } else if self[side].rate != nil, target(side).isActive {
            later(.milliseconds(1)) { $0.release(side) }
        }
    }

    private func later(_ time: TimeAmount, _ body: @escaping (WireConnection) -> Void) {
        let this = NIOLoopBound((self, body), eventLoop: client.eventLoop)
        client.eventLoop.scheduleTask(in: time) { this.value.1(this.value.0) }
    }

    // MARK: The end

    /// Whoever sends this way is gone: so is the other, once it has what is held.
    func end(_ side: FaultyWire.Side) {
        self[side].isOver = true
        // The end of a server does not come through either where nothing moves.
        if side == .answer, self[.answer].isSilent { return }
        let isHolding = self[side].held.readableBytes > 0 && !self[side].isSilent
        if !isHolding, !isClosing { target(side).close(promise: nil) }
    }

    private var isClosing = false

    private func silence() {
        for side in FaultyWire.Side.allCases { self[side].isSilent = true }
    }

    private func close(after written: EventLoopFuture<Void>) {
        isClosing = true
        let (client, server) = (client, server)
        written.whenComplete { _ in
            client.close(promise: nil)
            server.close(promise: nil)
        }
    }
}
