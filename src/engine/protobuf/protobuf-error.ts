/** The body is not a valid message. Has the messages of Kubernetes' generated decoders. */
export class ProtobufError extends Error {
  override name = 'ProtobufError';
}

export const unexpectedEnd = () => new ProtobufError('unexpected EOF');
