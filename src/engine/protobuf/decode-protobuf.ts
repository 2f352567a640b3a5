/**
 * Decodes bodies of type `application/vnd.kubernetes.protobuf`, for clients that send nothing else (kubectl >= 1.32,
 * client-go). Responses are never encoded: all these clients accept JSON. The kinds are listed here, their layout is in
 * tables/.
 */
import { messageNamed } from '#engine/protobuf/message-table.ts';
import { ProtobufError, unexpectedEnd } from '#engine/protobuf/protobuf-error.ts';
import { readMessage, type MessageValues } from '#engine/protobuf/read-message.ts';
import { WireReader } from '#engine/protobuf/wire-reader.ts';
import { writeFields } from '#engine/protobuf/write-json.ts';

export interface DecodedBody {
  readonly apiVersion: string;
  readonly kind: string;
  /** The JSON object that Kubernetes' encoder would produce, including apiVersion and kind. */
  readonly object: Record<string, unknown>;
}

const MAGIC = Buffer.from('k8s\0', 'latin1');
const MAX_SHOWN = 253;

/** Kinds by apiVersion; the message has the name of the kind unless another one follows a colon. */
export const protobufKinds: Readonly<Record<string, string>> = {
  v1: 'Namespace Node Pod PersistentVolume PersistentVolumeClaim ConfigMap Secret ServiceAccount Event ResourceQuota Service Binding',
  'admissionregistration.k8s.io/v1':
    'ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration MutatingWebhookConfiguration',
  'apiextensions.k8s.io/v1': 'CustomResourceDefinition',
  'apiregistration.k8s.io/v1': 'APIService',
  'apps/v1': 'ControllerRevision',
  'authentication.k8s.io/v1': 'TokenRequest TokenReview SelfSubjectReview',
  'authorization.k8s.io/v1':
    'SubjectAccessReview SelfSubjectAccessReview LocalSubjectAccessReview SelfSubjectRulesReview',
  'autoscaling/v1': 'Scale',
  'batch/v1': 'Job',
  'coordination.k8s.io/v1': 'Lease',
  'discovery.k8s.io/v1': 'EndpointSlice',
  'events.k8s.io/v1': 'Event:events.Event',
  'policy/v1': 'PodDisruptionBudget Eviction',
  'rbac.authorization.k8s.io/v1': 'Role RoleBinding ClusterRole ClusterRoleBinding',
  'scheduling.k8s.io/v1': 'PriorityClass',
  'storage.k8s.io/v1': 'StorageClass',
};

/** Message names by `apiVersion kind`. */
const messagesByKind: ReadonlyMap<string, string> = new Map(
  Object.entries(protobufKinds).flatMap(([apiVersion, kinds]) =>
    kinds.split(' ').map((entry): [string, string] => {
      const [kind = '', message = kind] = entry.split(':');
      return [`${apiVersion} ${kind}`, message];
    }),
  ),
);

/** Throws only ProtobufError, for any bytes. */
export function decodeProtobuf(bytes: Buffer): DecodedBody {
  const { apiVersion, kind, raw } = readEnvelope(bytes);
  const message = messageNamed(messageNameOf(apiVersion, kind));
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
  const [typeMeta, raw] = readMessage(WireReader.over(bytes.subarray(MAGIC.length)), messageNamed('Unknown'));
  // Every client writes it, even for an empty object: the body was truncated.
  if (raw === undefined) throw unexpectedEnd();
  const [apiVersion, kind] = (typeMeta ?? []) as MessageValues;
  return { apiVersion: (apiVersion ?? '') as string, kind: (kind ?? '') as string, raw: raw as Buffer };
}

function messageNameOf(apiVersion: string, kind: string): string {
  if (kind === '') throw new ProtobufError("Object 'Kind' is missing in the protobuf message");
  if (apiVersion === '') throw new ProtobufError("Object 'apiVersion' is missing in the protobuf message");
  // Each group has its own options: a typed client sends those of the group that it deletes from.
  if (kind === 'DeleteOptions') return kind;
  const name = messagesByKind.get(`${apiVersion} ${kind}`);
  if (name === undefined) {
    throw new ProtobufError(`no kind ${quoted(kind)} is registered for version ${quoted(apiVersion)}`);
  }
  return name;
}

/** Quotes a text and truncates it, so that a response does not repeat a whole body. */
function quoted(text: string): string {
  return JSON.stringify(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}...` : text);
}
