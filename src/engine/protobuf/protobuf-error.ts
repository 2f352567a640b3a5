/** The body is no message that we understand. The wording is that of Kubernetes' generated decoders. */
export class ProtobufError extends Error {
  override name = 'ProtobufError';
}

export const unexpectedEnd = () => new ProtobufError('unexpected EOF');
