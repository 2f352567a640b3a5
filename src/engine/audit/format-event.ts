/**
 * Formats a record as a line of the log: an Event of audit.k8s.io/v1 at level Metadata, so that readers of kube-apiserver's
 * logs can read ours. Annotations hold what Kubernetes has no field for. docs/audit.md lists all of it. Pure, except for
 * the generated ids of requests without one.
 *
 * Written piece by piece, because every write of the API pays for it: JSON.stringify of an object takes four times as
 * long.
 */
import type { AuditRecord } from '#engine/audit/audit-record.ts';
import { truncate, requestUri } from '#engine/audit/request-uri.ts';
import type { UserInfo } from '#engine/request/request.ts';
import type { ApiRoute } from '#engine/request/route.ts';
import type { ApiError } from '#kube/api-error.ts';
import { timestamp } from '#lib/clock.ts';
import { newUid } from '#lib/ids.ts';

const MAX_AGENT_LENGTH = 1024;
const MAX_MESSAGE_LENGTH = 1024;
const MAX_WORD_LENGTH = 32;
const MAX_WARNINGS = 16;

/** Returns one line including its newline; `dropped` is the number of records dropped before this one. */
export function formatEvent(record: AuditRecord, dropped = 0): string {
  const { impersonated, sourceIp, userAgent, receivedMs, tookMs } = record;
  return (
    `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":${quoted(record.id ?? newUid())}` +
    `,"stage":"${record.isOpen ? 'ResponseStarted' : 'ResponseComplete'}"` +
    `,"requestURI":${quoted(requestUri(record.path, record.query))}` +
    `,"verb":${quoted(truncate(record.verb, MAX_WORD_LENGTH))},"user":${userText(record.user)}` +
    (impersonated === undefined ? '' : `,"impersonatedUser":${userText(impersonated)}`) +
    (sourceIp === undefined ? '' : `,"sourceIPs":[${quoted(sourceIp)}]`) +
    (userAgent === '' ? '' : `,"userAgent":${quoted(truncate(userAgent, MAX_AGENT_LENGTH))}`) +
    objectRef(record.route, record.name) +
    `,"responseStatus":${statusText(record.code, record.error)}` +
    `,"requestReceivedTimestamp":"${microTime(receivedMs)}","stageTimestamp":"${microTime(receivedMs + tookMs)}"` +
    `,"annotations":{${annotationsText(record, dropped)}}}\n`
  );
}

const PLAIN = /^[ !#-[\]-~]*$/;

/** Quotes a text as JSON; nearly all texts need no escapes. */
function quoted(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : json(text);
}

/** JSON does not escape these, and terminals interpret some of them. */
const UNSEEN = /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

function json(value: unknown): string {
  return JSON.stringify(value).replace(UNSEEN, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Cached, because the same users send many requests. */
const userTexts = new WeakMap<UserInfo, string>();

function userText(user: UserInfo): string {
  const known = userTexts.get(user);
  if (known !== undefined) return known;
  const { name: username, uid, groups, extra } = user;
  // An unauthenticated user has no name.
  const text = username === '' ? '{}' : json({ username, uid: uid === '' ? undefined : uid, groups, extra });
  userTexts.set(user, text);
  return text;
}

function objectRef(route: ApiRoute, name: string): string {
  if (route.type !== 'resource') return '';
  const { plural, namespace, group, version, subresource } = route;
  return (
    `,"objectRef":{"resource":${quoted(plural)}` +
    (namespace === '' ? '' : `,"namespace":${quoted(namespace)}`) +
    (name === '' ? '' : `,"name":${quoted(name)}`) +
    (group === '' ? '' : `,"apiGroup":${quoted(group)}`) +
    `,"apiVersion":${quoted(version)}` +
    (subresource === '' ? '}' : `,"subresource":${quoted(subresource)}}`)
  );
}

function statusText(code: number, error: ApiError | undefined): string {
  if (error === undefined) return `{"metadata":{},"code":${code}}`;
  const { reason } = error;
  const shown = reason === '' ? undefined : reason;
  return json({ metadata: {}, status: 'Failure', message: messageOf(error), reason: shown, code });
}

/** Returns the message. Messages about invalid bodies quote them, so only the names of the fields are logged. */
function messageOf({ code, message, details }: ApiError): string | undefined {
  if (code === 400) return undefined;
  const fields = (details?.causes ?? []).flatMap(({ field = '' }) => (field === '' ? [] : [field]));
  if (code === 422 && fields.length > 0) return truncate(`invalid: ${fields.join(', ')}`, MAX_MESSAGE_LENGTH);
  return truncate(message, MAX_MESSAGE_LENGTH);
}

function annotationsText(record: AuditRecord, dropped: number): string {
  const { query, warnings, annotations } = record;
  let text = decisionText(record);
  for (const key in annotations) text += `,${json(key)}:${json(annotations[key])}`;
  const dryRun = query.size === 0 ? [] : query.getAll('dryRun');
  if (dryRun.length > 0) text += `,"audit.selfsame.io/dry-run":${quoted(truncate(dryRun.join(','), MAX_WORD_LENGTH))}`;
  if (warnings.length > 0) text += `,"audit.selfsame.io/warnings":${json(warningsText(warnings))}`;
  if (dropped > 0) text += `,"audit.selfsame.io/dropped-before":"${dropped}"`;
  return text.startsWith(',') ? text.slice(1) : text;
}

function decisionText({ decision, code }: AuditRecord): string {
  // The user may have been refused before the request was authorized: when impersonating.
  if (decision === undefined && code !== 403) return '';
  const outcome = decision?.allowed === true ? 'allow' : 'forbid';
  return `"authorization.k8s.io/decision":"${outcome}","authorization.k8s.io/reason":${quoted(decision?.reason ?? '')}`;
}

/** Formats a list as text, because annotation values are strings. */
function warningsText(warnings: readonly string[]): string {
  return JSON.stringify(warnings.slice(0, MAX_WARNINGS).map((text) => truncate(text, MAX_MESSAGE_LENGTH)));
}

/** Formats a time as RFC 3339 with microseconds. */
function microTime(ms: number): string {
  const micros = Math.floor((ms % 1000) * 1000);
  return `${timestamp(ms).slice(0, -1)}.${String(micros).padStart(6, '0')}Z`;
}
