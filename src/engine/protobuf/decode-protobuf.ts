/**
 * Decodes bodies of type `application/vnd.kubernetes.protobuf`, for clients that send nothing else (kubectl >= 1.32,
 * client-go). Responses are never encoded: all these clients accept JSON.
 */
import { type Message, messageOf, messageOfKind } from '#engine/protobuf/message-layout.ts';
import { ProtobufError, unexpectedEnd } from '#engine/protobuf/protobuf-error.ts';
import { readMessage, type MessageValues } from '#engine/protobuf/read-message.ts';
import { WireReader } from '#engine/protobuf/wire-reader.ts';
import { writeFields } from '#engine/protobuf/write-json.ts';
import { customResourceDefinitions } from '#engine/registry/crd/custom-resource-definitions.ts';
import { builtInResources } from '#engine/registry/kinds/all.ts';
import { type ApiType, apiTypeOf } from '#engine/registry/kinds/api-type.ts';
import { newEventSchema } from '#engine/registry/kinds/core/event.ts';
import { deleteOptionsSchema } from '#engine/registry/kinds/meta/delete-options.ts';
import { reviewResources } from '#engine/registry/kinds/access/reviews.ts';
import {
  bindingSchema,
  evictionSchema,
  scaleSchema,
  tokenRequestSchema,
} from '#engine/registry/kinds/subresource-kinds.ts';
import { apiVersionOf } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';
import { invariant } from '#lib/invariant.ts';

interface DecodedBody {
  readonly apiVersion: string;
  readonly kind: string;
  /** The JSON object that Kubernetes' encoder would produce, including apiVersion and kind. */
  readonly object: Record<string, unknown>;
}

const MAGIC = Buffer.from('k8s\0', 'latin1');
const MAX_SHOWN = 253;

/** Kinds that are not served by themselves. */
const OTHER_KINDS: Readonly<Record<string, Schema>> = {
  'authentication.k8s.io/v1 TokenRequest': tokenRequestSchema,
  'autoscaling/v1 Scale': scaleSchema,
  'events.k8s.io/v1 Event': newEventSchema,
  'policy/v1 Eviction': evictionSchema,
  'v1 Binding': bindingSchema,
};

let types: ReadonlyMap<string, ApiType> | undefined;

/** Returns the types of all kinds that can be decoded, by `apiVersion kind`. */
export function protobufTypes(): ReadonlyMap<string, ApiType> {
  types ??= new Map(
    [
      ...[...builtInResources, ...reviewResources, customResourceDefinitions].map(
        (resource) => [`${apiVersionOf(resource)} ${resource.kind}`, resource.schema] as const,
      ),
      ...Object.entries(OTHER_KINDS),
    ].map(([key, schema]) => {
      const type = apiTypeOf(schema);
      invariant(type !== undefined, `${key} has a named type`);
      return [key, type] as const;
    }),
  );
  return types;
}

/** Throws only ProtobufError, for any bytes. */
export function decodeProtobuf(bytes: Buffer): DecodedBody {
  const { apiVersion, kind, raw } = readEnvelope(bytes);
  const message = messageOfBody(apiVersion, kind);
  const values = readMessage(WireReader.over(raw), message);
  return { apiVersion, kind, object: writeFields(message, values, { kind, apiVersion }) };
}

/** Reads runtime.Unknown, which wraps every body. */
function readEnvelope(bytes: Buffer): { apiVersion: string; kind: string; raw: Buffer } {
  if (bytes.length === 0) throw new ProtobufError('empty data');
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) {
    throw new ProtobufError(
      `provided data does not appear to be a protobuf message, expected prefix [${MAGIC.join(' ')}]`,
    );
  }
  if (bytes.length === MAGIC.length) throw new ProtobufError('empty body');
  const [typeMeta, raw] = readMessage(WireReader.over(bytes.subarray(MAGIC.length)), messageOf('Unknown'));
  // Every client writes it, even for an empty object: the body was truncated.
  if (raw === undefined) throw unexpectedEnd();
  const [apiVersion, kind] = (typeMeta ?? []) as MessageValues;
  return { apiVersion: (apiVersion ?? '') as string, kind: (kind ?? '') as string, raw: raw as Buffer };
}

function messageOfBody(apiVersion: string, kind: string): Message {
  if (kind === '') throw new ProtobufError("Object 'Kind' is missing in the protobuf message");
  if (apiVersion === '') throw new ProtobufError("Object 'apiVersion' is missing in the protobuf message");
  // Each group has its own options: a typed client sends those of the group that it deletes from.
  if (kind === 'DeleteOptions') return messageOf(apiTypeOf(deleteOptionsSchema)!);
  const type = protobufTypes().get(`${apiVersion} ${kind}`);
  if (type === undefined) {
    throw new ProtobufError(`no kind ${quoted(kind)} is registered for version ${quoted(apiVersion)}`);
  }
  return messageOfKind(type);
}

/** Quotes a text and truncates it, so that a response does not repeat a whole body. */
function quoted(text: string): string {
  return JSON.stringify(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}...` : text);
}
