import Foundation
import LarderTestSupport
import Testing

@testable import Larder

@Suite("Texts about failures for a program's users")
struct ErrorTextsTests {
    /// The codes that the article has, which are those that are declared.
    private func codes() throws -> [LarderError.Code] {
        let article = try String(
            contentsOf: packageRoot.appending(path: "Sources/Larder/Larder.docc/Errors.md"), encoding: .utf8)
        return article.components(separatedBy: "\n| `").dropFirst().compactMap { rest in
            let code = String(rest.prefix { $0 != "`" })
            return code.contains(".") ? LarderError.Code(rawValue: code) : nil
        }
    }

    @Test("Each code leads to one situation of the user")
    func situations() throws {
        let codes = try codes()
        #expect(codes.count > 140)
        for code in codes { #expect(Situation.ofCodes[code] != nil, "\(code.rawValue)") }
        #expect(Set(codes) == Set(Situation.ofCodes.keys))
        #expect(Set(Situation.ofCodes.values).isSubset(of: Situation.allCases))
    }

    @Test("Each code has a text in English and in Japanese, without a code in it")
    func texts() throws {
        for code in try codes() {
            let error = LarderError(code, "for developers")
            let (english, japanese) = (ErrorTexts.english.text(for: error), ErrorTexts.japanese.text(for: error))
            #expect(english.hasSuffix(".") && english.allSatisfy(\.isASCII), "\(code.rawValue)")
            #expect(japanese.hasSuffix("。"), "\(code.rawValue)")
            for text in [english, japanese] { #expect(!text.contains(code.rawValue) && !text.contains("developers")) }
        }
        #expect(Situation.allCases.count == Set(Situation.ofCodes.values).count)
    }

    @Test("The first language that there are texts in is taken, and English where there is none")
    func languages() {
        let error = LarderError(.deleted, "")
        #expect(ErrorTexts(languages: ["fr-CA", "ja-JP", "en-US"]).text(for: error).hasSuffix("。"))
        #expect(ErrorTexts(languages: ["ja_JP"]).text(for: error).hasSuffix("。"))
        #expect(
            ErrorTexts(languages: ["en-GB", "ja-JP"]).text(for: error) == ErrorTexts.english.text(for: error))
        #expect(ErrorTexts(languages: ["fr"]).text(for: error) == ErrorTexts.english.text(for: error))
        #expect(ErrorTexts(languages: []).text(for: error) == ErrorTexts.english.text(for: error))
    }

    @Test("A program's own text takes the place of the library's, for its code alone")
    func replaced() {
        var texts = ErrorTexts.english
        texts[.operationsUnsentWork] = "Orders are waiting."
        #expect(texts.text(for: LarderError(.operationsUnsentWork, "")) == "Orders are waiting.")
        #expect(texts.text(for: LarderError(.operationsUploadsLeft, "")) != "Orders are waiting.")
    }

    @Test(
        "A status of HTTP leads to the situation that it stands for",
        arguments: [
            (401, .sessionEnded), (511, .sessionEnded), (403, .notAllowed), (404, .serverChanged),
            (410, .serverChanged), (409, .conflict), (412, .conflict), (408, .slow), (504, .slow), (413, .tooLarge),
            (425, .throttled), (429, .throttled), (503, .throttled), (500, .serverFault), (502, .serverFault),
            (400, .rejected), (422, .rejected), (302, .serverChanged),
        ] as [(Int, Situation)])
    func status(_ status: Int, _ situation: Situation) {
        let error = LarderError(.transportStatus, "", cause: TransportError(.status, "", status: status))
        #expect(error.situation == situation)
    }

    @Test(
        "The remedy follows from the status, the wait that the server asked for, and the kinds of its errors",
        arguments: [
            (
                LarderError(.transportStatus, "", cause: TransportError(.status, "", status: 401)),
                LarderError.Remedy.signIn
            ),
            (LarderError(.transportStatus, "", cause: TransportError(.status, "", status: 403)), .askForHelp),
            (
                LarderError(
                    .transportStatus, "", cause: TransportError(.status, "", status: 503, retryAfter: .seconds(7))),
                .tryAgain(after: .seconds(7))
            ),
            (LarderError(.transportStatus, "", cause: TransportError(.status, "", status: 500)), .tryAgain(after: nil)),
            (
                LarderError(.identityThrottled, "", cause: IdentityError(.throttled, "", retryAfter: .seconds(3))),
                .tryAgain(after: .seconds(3))
            ),
            (
                LarderError(.objectThrottled, "", cause: ObjectError(.throttled, "", retryAfter: .seconds(5))),
                .tryAgain(after: .seconds(5))
            ),
            (LarderError(.transportUnreachable, ""), .connect),
            (
                LarderError(
                    .transportNotPrepared, "",
                    cause: TransportError(.notPrepared, "", cause: LarderError(.identityUnreachable, ""))), .connect
            ),
            (LarderError(.transportNotPrepared, "", cause: TransportError(.notPrepared, "")), .tryAgain(after: nil)),
            (
                LarderError(
                    .objectNotPrepared, "",
                    cause: ObjectError(.notPrepared, "", cause: LarderError(.identityUnreachable, ""))), .connect
            ),
            (LarderError(.serverErrors, "", cause: TransportError(.status, "", status: 401)), .signIn),
            (
                LarderError(
                    .serverErrors, "", errors: [.init(message: "", extensions: ["errorType": "UNAUTHENTICATED"])]),
                .signIn
            ),
            (
                LarderError(.serverErrors, "", errors: [.init(message: "", extensions: ["code": "CONFLICT"])]),
                .tryAgain(after: nil)
            ),
            (LarderError(.recordsFull, ""), .freeSpace),
            (LarderError(.recordsFutureFormat, ""), .updateApp),
            (LarderError(.cancelled, ""), .nothing),
            (LarderError(.sourceMissing, ""), .correctInput),
            (LarderError(.init(rawValue: "a.programs.own"), ""), .askForHelp),
        ])
    func remedy(_ error: LarderError, _ remedy: LarderError.Remedy) {
        #expect(error.remedy == remedy)
    }

    @Test(
        "The remedy for a full disk, a lost key, newer data and a server that is away is the same in each layer",
        arguments: [
            ([.recordsFull, .operationsFull, .diskFull], LarderError.Remedy.freeSpace),
            ([.keysMissing, .keysUnknownKey], .signIn),
            ([.recordsFutureFormat, .operationsNewerFormat, .keysNewerFormat], .updateApp),
            ([.transportUnreachable, .objectUnreachable, .identityUnreachable], .connect),
        ] as [([LarderError.Code], LarderError.Remedy)])
    func layers(_ codes: [LarderError.Code], _ remedy: LarderError.Remedy) {
        for code in codes { #expect(LarderError(code, "").remedy == remedy, "\(code.rawValue)") }
    }

    @Test(
        "A code's remedy is what its documentation tells a user to do",
        arguments: [
            (
                [
                    .notSignedIn, .transportNotSignedIn, .identityUserPoolRefused, .identityFederatedRefused,
                    .keysMissing, .keysUnknownKey,
                ], .signIn
            ),
            ([.recordsFull, .operationsFull, .diskFull], .freeSpace),
            ([.recordsFutureFormat, .operationsNewerFormat, .keysNewerFormat], .updateApp),
            (
                [
                    .transportUnreachable, .transportInterrupted, .objectUnreachable, .objectInterrupted,
                    .identityUnreachable,
                ], .connect
            ),
            (
                [
                    .recordsBusy, .operationsBusy, .transportTimedOut, .objectTimedOut, .objectThrottled,
                    .identityThrottled, .keysLocked, .keysTimedOut,
                ], .tryAgain(after: nil)
            ),
            ([.recordsDamaged, .operationsDamaged, .keysDamaged, .operationsForeign, .keysForeign], .askForHelp),
            ([.cancelled, .transportCancelled, .objectCancelled, .keysCancelled, .identityCancelled], .nothing),
        ] as [([LarderError.Code], LarderError.Remedy)])
    func documented(_ codes: [LarderError.Code], _ remedy: LarderError.Remedy) {
        for code in codes { #expect(LarderError(code, "").remedy == remedy, "\(code.rawValue)") }
    }

    @Test(
        "The remedy is to wait for a locked device, to sign in anew, or to choose another file or password",
        arguments: [
            (.protected, .tryAgain(after: nil)), (.unfinishedTransfer, .nothing),
            (.objectExpiredCredentials, .signIn), (.destinationExists, .correctInput),
            (LarderError.Code(rawValue: "cognito.weakPassword"), .correctInput),
        ] as [(LarderError.Code, LarderError.Remedy)])
    func leftToUser(_ code: LarderError.Code, _ remedy: LarderError.Remedy) {
        #expect(LarderError(code, "").remedy == remedy)
    }

    @Test(
        "A user reads the same of an HTTP status as of the code that means it",
        arguments: [
            ([401, 511], LarderError.Code.identityUserPoolRefused), ([403], .objectAccessDenied),
            ([300, 404, 410], .recordsSchemaMismatch), ([409, 412], .operationsWrongState),
            ([408, 504], .transportTimedOut), ([413], .recordsTooLarge), ([425, 429, 503], .objectThrottled),
            ([500, 502, 505], .objectServerFault), ([400, 418, 499], .objectRejected),
        ])
    func statuses(_ statuses: [Int], _ code: LarderError.Code) {
        for status in statuses {
            let error = LarderError(.transportStatus, "", cause: TransportError(.status, "", status: status))
            let same = LarderError(code, "")
            #expect(ErrorTexts.english.text(for: error) == ErrorTexts.english.text(for: same), "\(status)")
            #expect(error.remedy == same.remedy, "\(status)")
        }
    }

    @Test("A user reads the same of a transfer that was restored as of a mutation whose commit is not known")
    func restored() {
        let (transfer, mutation) = (LarderError(.restoredTransfer, ""), LarderError(.operationsCommitUnknown, ""))
        #expect(ErrorTexts.english.text(for: transfer) == ErrorTexts.english.text(for: mutation))
        #expect(transfer.remedy == .tryAgain(after: nil) && mutation.remedy == .tryAgain(after: nil))
    }

    /// Expects that the text of a situation asks the user for what its remedy says, in one of the remedy's words.
    private func expectAsked(
        for words: [LarderError.Remedy: [String]], in texts: ErrorTexts, _ situation: Situation,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let code = try #require(
            Situation.ofCodes.keys.first { LarderError($0, "").situation == situation }, sourceLocation: sourceLocation)
        let text = texts.text(for: code)
        let asked = try #require(words[situation.remedy(after: nil)], sourceLocation: sourceLocation)
        if asked.isEmpty {
            let isAsked = words.values.joined().contains(where: text.contains)
            #expect(!isAsked, "\(text)", sourceLocation: sourceLocation)
        } else {
            #expect(asked.contains(where: text.contains), "\(text)", sourceLocation: sourceLocation)
        }
    }

    @Test("What the text of a situation asks of the user is what its remedy says", arguments: Situation.allCases)
    func askedFor(_ situation: Situation) throws {
        let words: [LarderError.Remedy: [String]] = [
            .tryAgain(after: nil): ["ry again", "try once more"], .signIn: ["Sign in"], .connect: ["onnect"],
            .freeSpace: ["Free some space"], .updateApp: ["Update the app"], .askForHelp: ["sk for help"],
            .correctInput: ["Check", "Choose", "Fill in", "Enter", "Reset", "Sign in, or choose"], .nothing: [],
        ]
        try expectAsked(for: words, in: .english, situation)
    }

    @Test("The Japanese text of a situation asks the user for what its remedy says", arguments: Situation.allCases)
    func askedForInJapanese(_ situation: Situation) throws {
        let words: [LarderError.Remedy: [String]] = [
            .tryAgain(after: nil): ["もう一度お試し"], .signIn: ["サインインし"], .connect: ["接続"],
            .freeSpace: ["空き容量を増やし"], .updateApp: ["アプリを更新"], .askForHelp: ["サポートにお問い合わせ"],
            .correctInput: ["入力", "選択", "確認", "再設定"], .nothing: [],
        ]
        try expectAsked(for: words, in: .japanese, situation)
    }

    @Test("A server's errors lead to the remedy of the most urgent kind among them")
    func serverErrors() async throws {
        func remedy(_ codes: String...) async throws -> LarderError.Remedy? {
            let errors = codes.map { #"{"message":"no","extensions":{"code":"\#($0)"}}"# }.joined(separator: ",")
            let server = ScriptedServer { _ in #"{"data":null,"errors":[\#(errors)]}"# }
            var found: LarderError.Remedy?
            try await withStoreFixture(server) { app in
                do throws(LarderError) { _ = try await app.fetch(recipeList) } catch { found = error.remedy }
            }
            return found
        }
        #expect(try await remedy("UNAUTHENTICATED") == .signIn)
        #expect(try await remedy("BAD_USER_INPUT") == .correctInput)
        #expect(try await remedy("BAD_USER_INPUT", "THROTTLED") == .tryAgain(after: nil))
        #expect(try await remedy("INTERNAL_SERVER_ERROR") == .tryAgain(after: nil))
        #expect(try await remedy("THROTTLED", "UNAUTHENTICATED") == .signIn)
    }

    @Test("A code of a layer below is matched by its constant")
    func constants() async throws {
        try await withStoreFixture { app in
            do throws(LarderError) { try await app.replayMutation(MutationID(UUID())) } catch {
                #expect(error.code == .operationsNotFound)
                #expect(error.localizedDescription == ErrorTexts(languages: Locale.preferredLanguages).text(for: error))
                #expect(error.failureReason == error.message)
            }
        }
    }

    @Test("A program's own text can be read, and the library's is back once it is taken away")
    func takenBack() {
        let code = LarderError.Code.operationsUnsentWork
        var texts = ErrorTexts.english
        #expect(texts[code] == nil)
        texts[code] = "Orders are waiting."
        #expect(texts[code] == "Orders are waiting.")
        #expect(texts.text(for: code) == "Orders are waiting.")
        texts[code] = nil
        #expect(texts.text(for: code) == ErrorTexts.english.text(for: code))
    }

    @Test("The text of a transport's error follows from its HTTP status, as that of a LarderError does")
    func transportStatus() {
        for status in [401, 403, 503] {
            let error = TransportError(.status, "", status: status)
            let same = LarderError(.transportStatus, "", cause: error)
            #expect(error.errorDescription == same.errorDescription, "\(status)")
            #expect(error.errorDescription != LarderError(.transportStatus, "").errorDescription, "\(status)")
        }
    }

    @Test(
        "A code that says to sign in, to wait, to resume or to enter something else leads to the remedy of that",
        arguments: [
            (
                [
                    .init(rawValue: "cognito.signInAgain"), .init(rawValue: "cognito.federatedRefused"),
                    .notInUserPool, .objectExpiredCredentials,
                ], .signIn
            ),
            (
                [
                    .init(rawValue: "cognito.throttled"), .init(rawValue: "cognito.tooManyAttempts"), .suspended,
                    .protected,
                ], .tryAgain(after: nil)
            ),
            (
                [
                    .init(rawValue: "cognito.emptyField"), .init(rawValue: "cognito.codeExpired"),
                    .init(rawValue: "cognito.userNotConfirmed"), .init(rawValue: "cognito.passwordResetRequired"),
                ], .correctInput
            ),
        ] as [([LarderError.Code], LarderError.Remedy)])
    func told(_ codes: [LarderError.Code], _ remedy: LarderError.Remedy) {
        for code in codes { #expect(LarderError(code, "").remedy == remedy, "\(code.rawValue)") }
    }

    @Test("The remedy for a miss is to connect, and what goes on by itself has none")
    func waitingAndMissing() {
        #expect(LarderError(.miss, "").remedy == .connect)
        #expect(LarderError(.unsettled, "").remedy == .nothing)
    }
}
