import Larder
import LarderGraphQL

extension MadeUpData {
    /// Why an operation has no answer.
    struct Refusal: Error {
        var message: String
    }

    /// An operation that fits the schema.
    struct Operation {
        let root: SchemaIndex.TypeID
        let selections: [Selection]
        private let fragments: [String: FragmentDefinition]
        private let variables: [String: Value]

        init(_ request: GraphQLRequest, _ schema: SchemaIndex) throws(Refusal) {
            do {
                let document = try Document(parsing: request.document)
                if let error = validate(document, against: schema).first { throw Refusal(message: error.message) }
                let named = document.operations.first {
                    request.operationName == nil || $0.name == request.operationName
                }
                guard let operation = named, let root = schema.rootType(of: operation.kind) else {
                    throw Refusal(message: "There is no such operation")
                }
                guard case .object(let given) = try Value(json: request.variables) else {
                    throw Refusal(message: "The variables are no object")
                }
                self.root = root
                selections = operation.selections
                fragments = Dictionary(document.fragments.map { ($0.name, $0) }) { first, _ in first }
                variables = try operation.coerce(given, in: schema)
            } catch {
                throw (error as? Refusal) ?? Refusal(message: "\(error)")
            }
        }

        /// The fields that the selections select of an object, by their keys, in order.
        func fields(
            _ selections: [[Selection]], of type: SchemaIndex.TypeID, _ schema: SchemaIndex
        ) -> [(key: String, fields: [Field])] {
            var groups: [(key: String, fields: [Field])] = []
            var places: [String: Int] = [:]
            for selections in selections { collect(selections, type, schema, into: &groups, &places) }
            return groups
        }

        private func collect(
            _ selections: [Selection], _ type: SchemaIndex.TypeID, _ schema: SchemaIndex,
            into groups: inout [(key: String, fields: [Field])], _ places: inout [String: Int]
        ) {
            for selection in selections {
                switch selection {
                case .field(let field) where isSelected(field.directives):
                    if let place = places[field.responseKey] {
                        groups[place].fields.append(field)
                    } else {
                        places[field.responseKey] = groups.count
                        groups.append((field.responseKey, [field]))
                    }
                case .fragmentSpread(let spread) where isSelected(spread.directives):
                    guard let fragment = fragments[spread.name], applies(fragment.typeCondition, type, schema) else {
                        continue
                    }
                    collect(fragment.selections, type, schema, into: &groups, &places)
                case .inlineFragment(let fragment) where isSelected(fragment.directives):
                    guard applies(fragment.typeCondition, type, schema) else { continue }
                    collect(fragment.selections, type, schema, into: &groups, &places)
                case .field, .fragmentSpread, .inlineFragment: continue
                }
            }
        }

        private func applies(_ condition: String?, _ type: SchemaIndex.TypeID, _ schema: SchemaIndex) -> Bool {
            guard let condition else { return true }
            guard let conditioned = schema.type(named: condition) else { return false }
            return conditioned == type || schema.isPossible(type, of: conditioned)
        }

        private func isSelected(_ directives: [Directive]) -> Bool {
            for directive in directives where ["skip", "include"].contains(directive.name) {
                let value = directive.arguments.first { $0.name == "if" }?.value.resolved(variables)
                if value != .boolean(directive.name == "include") { return false }
            }
            return true
        }

        func arguments(of field: Field, _ definition: FieldDefinition) -> Arguments {
            var values: [String: Value] = [:]
            for argument in definition.arguments {
                let given = field.arguments.first { $0.name == argument.name }?.value.resolved(variables)
                values[argument.name] = given ?? argument.defaultValue?.resolved([:])
            }
            return Arguments(values: values)
        }
    }

    /// What a field is asked with.
    struct Arguments {
        let values: [String: Value]

        private static let lengths = ["first", "last", "limit"]

        /// Equal for equal arguments, whatever length of a list they ask for.
        var text: String { MadeUpData.text(.object(values.filter { !Self.lengths.contains($0.key) })) }

        /// The scalars among them, those within input objects too, by their own names.
        var leaves: [String: Value] {
            var leaves: [String: Value] = [:]
            Self.collect(values, into: &leaves)
            return leaves
        }

        private static func collect(_ values: [String: Value], into leaves: inout [String: Value]) {
            for (name, value) in values {
                switch value {
                case .object(let members): collect(members, into: &leaves)
                case .list, .null: continue
                case .boolean, .int, .float, .number, .string: leaves[name] = value
                }
            }
        }

        /// The keys of the objects that the field has, where its policy says that one argument lists them.
        func keys(for definition: FieldDefinition) -> [Value]? {
            guard let paths = definition.policy?.keyArgs, paths.count == 1, let path = paths.first else { return nil }
            guard case .list(let keys)? = values["\(path)"] else { return nil }
            return keys
        }

        /// How long a list is that may have `standard` elements.
        func limit(_ standard: Int) -> Int {
            for name in Self.lengths {
                if case .int(let limit)? = values[name] { return Int(max(0, min(limit, Int64(standard)))) }
            }
            return standard
        }
    }
}
