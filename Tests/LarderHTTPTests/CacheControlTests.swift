import Larder
import Testing

@Suite("Ages of answers")
struct CacheControlTests {
    @Test(
        "max-age is found among the directives, whatever their case and order",
        arguments: [
            (["max-age=60"], 60), (["private, MAX-AGE = 5 , must-revalidate"], 5), (["no-cache", "max-age=\"7\""], 7),
            (["max-age=0"], 0), (["max-age=1", "max-age=2"], 1), (["private=\"a,max-age=0\", max-age=60"], 60),
            (["max-age=99999999999999999999999"], 3_162_240_000),
        ] as [([String], Int)])
    func maxAge(_ fields: [String], _ seconds: Int) {
        #expect(CacheControl(fields).maxAge == .seconds(seconds))
    }

    @Test(
        "What is no max-age says nothing",
        arguments: [[], ["no-store"], ["s-maxage=5"], ["max-age"], ["max-age=-1"], ["max-age=soon"], [",,="]])
    func noMaxAge(_ fields: [String]) {
        #expect(CacheControl(fields).maxAge == nil)
    }

    @Test("Age is a number of seconds")
    func age() {
        #expect(CacheControl([], age: [" 12 "]).age == .seconds(12))
        #expect(CacheControl([], age: ["-1"]).age == nil)
        #expect(CacheControl([], age: []).age == nil)
    }
}
