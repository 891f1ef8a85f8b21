/// Values are equal by what they hold: kinds, numbers, text, elements in order, fields by name in any order.
/// An absent field equals only an absent field, or a field that the other does not have. A custom scalar equals what
/// its text says, so that an answer from a cache equals the same data that was read as JSON.
extension ResponseValue: Hashable {
    public static func == (left: ResponseValue, right: ResponseValue) -> Bool {
        left.buffer.equals(left.cell, right.cell, of: right.buffer)
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(buffer.hash(cell, .ofProcess)) }
}

/// Safe: both buffers are kept by the call that compares or hashes their texts; `parsed` copies what it reads.
extension ResponseBuffer {
    // Recursion is bounded: a response is as deep as its operation, or as `JSONScanner` allows.
    func equals(_ mine: ResponseCell, _ theirs: ResponseCell, of other: ResponseBuffer) -> Bool {
        if mine.kind == .json || theirs.kind == .json { return equalOpened(mine, theirs, of: other) }
        guard mine.kind == theirs.kind else { return false }
        switch mine.kind {
        case .absent, .null, .no, .yes: return true
        case .int: return mine.payload == theirs.payload
        case .float: return Double(bitPattern: mine.payload) == Double(bitPattern: theirs.payload)
        case .number, .string, .json:
            return equalText(mine, theirs, of: other)
        case .list:
            return mine.count == theirs.count && equalCells(mine, theirs, count: Int(mine.count), of: other)
        case .object:
            if shapes === other.shapes, mine.count == theirs.count {
                return equalCells(mine, theirs, count: shape(mine).names.count, of: other)
            }
            return equalByName(mine, theirs, of: other)
        }
    }

    private func equalText(_ mine: ResponseCell, _ theirs: ResponseCell, of other: ResponseBuffer) -> Bool {
        unsafe hasSameBytes(UnsafeRawBufferPointer(text(mine)), UnsafeRawBufferPointer(other.text(theirs)))
    }

    /// Where either is the text of a custom scalar.
    private func equalOpened(_ mine: ResponseCell, _ theirs: ResponseCell, of other: ResponseBuffer) -> Bool {
        if mine.kind == theirs.kind, equalText(mine, theirs, of: other) { return true }
        let (myContent, theirContent) = (opened(mine), other.opened(theirs))
        // Text that cannot be looked into equals only itself.
        guard myContent.cell.kind != .json, theirContent.cell.kind != .json else { return false }
        return myContent.buffer.equals(myContent.cell, theirContent.cell, of: theirContent.buffer)
    }

    /// What the text of a custom scalar says; anything else, and text that cannot be looked into, as it is.
    private func opened(_ cell: ResponseCell) -> (buffer: ResponseBuffer, cell: ResponseCell) {
        guard cell.kind == .json, let buffer = unsafe try? ResponseBuffer.parsed(text(cell), .keepText) else {
            return (self, cell)
        }
        let root = buffer.cell(at: 0)
        return root.kind == .json ? (self, cell) : (buffer, root)
    }

    private func equalCells(
        _ mine: ResponseCell, _ theirs: ResponseCell, count: Int, of other: ResponseBuffer
    ) -> Bool {
        for index in 0..<count {
            let step = index * ResponseCell.size
            guard equals(cell(at: mine.offset + step), other.cell(at: theirs.offset + step), of: other) else {
                return false
            }
        }
        return true
    }

    private func equalByName(_ mine: ResponseCell, _ theirs: ResponseCell, of other: ResponseBuffer) -> Bool {
        let (myNames, theirShape) = (shape(mine).names, other.shape(theirs))
        var matched = 0
        for (index, name) in myNames.enumerated() {
            let field = cell(at: mine.offset + index * ResponseCell.size)
            if field.kind == .absent { continue }
            guard let position = theirShape.position(of: name, guess: index) else { return false }
            matched += 1
            let theirField = other.cell(at: theirs.offset + position * ResponseCell.size)
            guard equals(field, theirField, of: other) else { return false }
        }
        let present = theirShape.names.indices.count { index in
            other.cell(at: theirs.offset + index * ResponseCell.size).kind != .absent
        }
        return matched == present
    }

    /// Equal for what `equals` finds equal.
    func hash(_ cell: ResponseCell, _ keyed: KeyedHash) -> UInt64 {
        let kind = UInt64(cell.kind.rawValue) << 32
        switch cell.kind {
        case .absent, .null, .no, .yes: return keyed.mix(kind, 0)
        case .int: return keyed.mix(kind, cell.payload)
        case .float:
            // There are two zeros.
            return keyed.mix(kind, Double(bitPattern: cell.payload) == 0 ? 0 : cell.payload)
        case .number, .string: return unsafe keyed.mix(kind, keyed.hash(UnsafeRawBufferPointer(text(cell))))
        case .json:
            let content = opened(cell)
            guard content.cell.kind != .json else {
                return unsafe keyed.mix(kind, keyed.hash(UnsafeRawBufferPointer(text(cell))))
            }
            return content.buffer.hash(content.cell, keyed)
        case .list:
            var hash = kind | UInt64(cell.count)
            for index in 0..<Int(cell.count) {
                hash = keyed.mix(hash, self.hash(self.cell(at: cell.offset + index * ResponseCell.size), keyed))
            }
            return hash
        case .object:
            // The order of fields does not count, so their hashes are added up.
            var sum: UInt64 = 0
            let names = shape(cell).nameHashes
            for index in names.indices {
                let field = self.cell(at: cell.offset + index * ResponseCell.size)
                if field.kind == .absent { continue }
                sum &+= keyed.mix(names[index], hash(field, keyed))
            }
            return keyed.mix(kind, sum)
        }
    }
}
