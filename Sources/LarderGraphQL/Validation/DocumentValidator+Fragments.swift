extension DocumentValidator {
    /// Reports each spread that leads back to a fragment which it is itself part of. Time: linear.
    mutating func checkFragmentCycles() {
        enum Mark { case unseen, open, done }
        var marks = [Mark](repeating: .unseen, count: document.fragments.count)
        // A stack of its own: chains of fragments are as long as the document.
        var path: [(fragment: Int, nextSpread: Int)] = []
        for start in document.fragments.indices where marks[start] == .unseen {
            marks[start] = .open
            path.append((start, 0))
            while let (fragment, next) = path.last {
                let spreads = fragmentUses[fragment].spreads
                guard next < spreads.count else {
                    marks[fragment] = .done
                    path.removeLast()
                    continue
                }
                path[path.count - 1].nextSpread += 1
                let spread = spreads[next]
                switch marks[spread.fragment] {
                case .unseen:
                    marks[spread.fragment] = .open
                    path.append((spread.fragment, 0))
                case .open:
                    let name = document.fragments[spread.fragment].name
                    let message = "Fragment \(name) is spread within itself"
                    report(.fragmentSpreadsMustNotFormCycles, message, at: spread.location)
                case .done:
                    break
                }
            }
        }
    }

    /// A subscription has one root field, and that is none of introspection (section 5.2.3.1).
    mutating func checkSubscriptions() {
        let roots = fragmentUses.map(\.set)
        for (operation, uses) in zip(document.operations, operationUses) where operation.kind == .subscription {
            guard let set = uses.set, let fields = graph.fields(of: [set], roots: roots, budget: &budget) else {
                continue
            }
            var keys: Set<Int> = []
            for field in fields.map({ graph.fields[$0] }) {
                if keys.insert(field.responseKey).inserted, keys.count == 2 {
                    let message = "A subscription has one root field, and this is its second"
                    report(.singleRootField, message, at: field.location)
                }
                if field.name.hasPrefix("__") {
                    let message = "The root field of a subscription cannot be \(field.name)"
                    report(.singleRootField, message, at: field.location)
                }
            }
        }
    }

    mutating func checkMerging() {
        let roots = fragmentUses.map(\.set)
        var starts = operationUses.compactMap(\.set)
        var isReached = [Bool](repeating: false, count: roots.count)
        for uses in operationUses + fragmentUses {
            for spread in uses.spreads { isReached[spread.fragment] = true }
        }
        // A fragment that is spread somewhere is checked there, with all that surrounds it.
        for (index, set) in roots.enumerated() where !isReached[index] {
            if let set { starts.append(set) }
        }
        var merging = FieldMerging(graph: graph, fragmentRoots: roots, schema: schema)
        for conflict in merging.conflicts(from: starts, budget: &budget) {
            report(.fieldSelectionMerging, conflict.message, at: conflict.location)
        }
    }
}
