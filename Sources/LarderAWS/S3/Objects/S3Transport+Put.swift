public import Larder

extension S3Transport {
    public func put(
        _ body: ObjectBody, to location: ObjectLocation, _ attributes: ObjectAttributes, idle: Duration
    ) async throws(ObjectError) -> StoredObject {
        var request = S3Request(.PUT, bucket: location.bucket, key: location.key, region: location.region)
        request.headers = try S3Request.fields(of: attributes)
        let sent = try await send(body, request, idle: idle)
        do throws(S3Refusal) {
            var object = try sent.answer.headers.object(size: body.size)
            object.crc32c = sent.crc32c
            object.attributes = attributes
            return object
        } catch {
            throw error.error
        }
    }
}
