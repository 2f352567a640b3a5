/** Parses a line of an audit log, written by Selfsame or by kube-apiserver. Pure. */
import { isRecord } from '#kube/meta.ts';

export interface AuditLine {
  readonly receivedMs: number;
  readonly user: string;
  /** Each of the following texts is '' if the event has none. */
  readonly impersonatedUser: string;
  readonly sourceIp: string;
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** The path of the request. Shown for requests that are not for a resource. */
  readonly path: string;
  readonly code: number;
  readonly note: string;
}

/** Returns undefined for a torn line, or one that is not an audit event. */
export function parseAuditLine(text: string): AuditLine | undefined {
  let event: unknown;
  try {
    event = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isRecord(event) || event['kind'] !== 'Event') return undefined;
  const ref = recordIn(event, 'objectRef');
  const status = recordIn(event, 'responseStatus');
  const sources = Array.isArray(event['sourceIPs']) ? (event['sourceIPs'] as unknown[]) : [];
  return {
    receivedMs: Date.parse(textIn(event, 'requestReceivedTimestamp')) || 0,
    user: textIn(recordIn(event, 'user'), 'username'),
    impersonatedUser: textIn(recordIn(event, 'impersonatedUser'), 'username'),
    sourceIp: sources.filter((source) => typeof source === 'string').join(','),
    verb: textIn(event, 'verb'),
    group: textIn(ref, 'apiGroup'),
    resource: textIn(ref, 'resource'),
    subresource: textIn(ref, 'subresource'),
    namespace: textIn(ref, 'namespace'),
    name: textIn(ref, 'name'),
    path: textIn(event, 'requestURI'),
    code: Number(status['code']) || 0,
    note: noteOf(status, recordIn(event, 'annotations')),
  };
}

type Loose = Readonly<Record<string, unknown>>;

const EMPTY_RECORD: Loose = {};

function recordIn(value: Loose, key: string): Loose {
  const found = value[key];
  return isRecord(found) ? found : EMPTY_RECORD;
}

function textIn(value: Loose, key: string): string {
  const found = value[key];
  return typeof found === 'string' ? found : '';
}

function noteOf(status: Loose, annotations: Loose): string {
  const dropped = textIn(annotations, 'audit.selfsame.io/dropped-before');
  return [
    dropped === '' ? '' : `${dropped} earlier events were lost`,
    textIn(annotations, 'audit.selfsame.io/dry-run') === '' ? '' : 'dry run',
    textIn(status, 'message') || textIn(status, 'reason'),
    ...warningsIn(textIn(annotations, 'audit.selfsame.io/warnings')).map((text) => `warning: ${text}`),
  ]
    .filter((text) => text !== '')
    .join('; ');
}

function warningsIn(text: string): string[] {
  try {
    const found: unknown = text === '' ? [] : JSON.parse(text);
    return Array.isArray(found) ? found.filter((item) => typeof item === 'string') : [];
  } catch {
    return [];
  }
}
