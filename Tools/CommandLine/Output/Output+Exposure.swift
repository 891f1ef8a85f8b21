package import Larder

extension Output {
    /// Says what of a store other users could use, and cannot any more.
    package func note(_ change: StoreExposure) {
        if let text = change.change { note(text) }
    }

    /// Says what of a store other users may use. `--json` has it in the result.
    package func noteFinding(_ exposure: StoreExposure) {
        if let text = exposure.finding { note(text) }
    }
}

extension StoreExposure {
    /// `exposed`, as `--json` has it.
    package var member: (name: String, value: JSONText) {
        (
            "exposed",
            .array(
                items.map { item in
                    .object([("path", .string(item.path)), ("mode", .string(String(item.mode, radix: 8)))])
                })
        )
    }
}
