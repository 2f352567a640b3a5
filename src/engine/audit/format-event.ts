/**
 * A record as a line of the log: an Event of audit.k8s.io/v1 at level Metadata, so that whoever reads the logs of a
 * kube-apiserver reads ours. What Kubernetes has no field for is an annotation. docs/audit.md lists all of it. Pure, but
 * for the ids of requests that came without one.
 *
 * Written piece by piece, because every write of the API pays for it: an object for JSON.stringify takes four times as
 * long.
 */
import type { AuditRecord } from '#engine/audit/audit-record.ts';
import { cut, requestUri } from '#engine/audit/request-uri.ts';
import type { UserInfo } from '#engine/request.ts';
import type { Route } from '#engine/route.ts';
import type { ApiError } from '#kube/api-error.ts';
import { timestamp } from '#lib/clock.ts';
import { newUid } from '#lib/ids.ts';

const MAX_AGENT_LENGTH = 1024;
const MAX_MESSAGE_LENGTH = 1024;
const MAX_WORD_LENGTH = 32;
const MAX_WARNINGS = 16;

/** One line with its end; `dropped`: how many records before this one nobody could keep. */
export function formatEvent(record: AuditRecord, dropped = 0): string {
  const { impersonated, sourceIp, userAgent, receivedMs, tookMs } = record;
  return (
    `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":${quoted(record.id ?? newUid())}` +
    `,"stage":"${record.isOpen ? 'ResponseStarted' : 'ResponseComplete'}"` +
    `,"requestURI":${quoted(requestUri(record.path, record.query))}` +
    `,"verb":${quoted(cut(record.verb, MAX_WORD_LENGTH))},"user":${userText(record.user)}` +
    (impersonated === undefined ? '' : `,"impersonatedUser":${userText(impersonated)}`) +
    (sourceIp === undefined ? '' : `,"sourceIPs":[${quoted(sourceIp)}]`) +
    (userAgent === '' ? '' : `,"userAgent":${quoted(cut(userAgent, MAX_AGENT_LENGTH))}`) +
    objectRef(record.route, record.name) +
    `,"responseStatus":${statusText(record.code, record.error)}` +
    `,"requestReceivedTimestamp":"${microTime(receivedMs)}","stageTimestamp":"${microTime(receivedMs + tookMs)}"` +
    `,"annotations":{${annotationsText(record, dropped)}}}\n`
  );
}

const PLAIN = /^[ !#-[\]-~]*$/;

/** As JSON; nearly all texts need no escapes. */
function quoted(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : json(text);
}

/** JSON has these as they are, and terminals obey some of them. */
const UNSEEN = /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

function json(value: unknown): string {
  return JSON.stringify(value).replace(UNSEEN, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** The same people ask again and again. */
const usersKnown = new WeakMap<UserInfo, string>();

function userText(user: UserInfo): string {
  const known = usersKnown.get(user);
  if (known !== undefined) return known;
  const { name: username, uid, groups, extra } = user;
  // Who could not prove to be anybody has no name.
  const text = username === '' ? '{}' : json({ username, uid: uid === '' ? undefined : uid, groups, extra });
  usersKnown.set(user, text);
  return text;
}

function objectRef(route: Route, name: string): string {
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

/** Messages about what is wrong with a body quote from it: of those, only the names of the fields are told. */
function messageOf({ code, message, details }: ApiError): string | undefined {
  if (code === 400) return undefined;
  const fields = (details?.causes ?? []).flatMap(({ field = '' }) => (field === '' ? [] : [field]));
  if (code === 422 && fields.length > 0) return cut(`invalid: ${fields.join(', ')}`, MAX_MESSAGE_LENGTH);
  return cut(message, MAX_MESSAGE_LENGTH);
}

function annotationsText(record: AuditRecord, dropped: number): string {
  const { query, warnings, annotations } = record;
  let text = decisionText(record);
  for (const key in annotations) text += `,${json(key)}:${json(annotations[key])}`;
  const dryRun = query.size === 0 ? [] : query.getAll('dryRun');
  if (dryRun.length > 0) text += `,"audit.selfsame.io/dry-run":${quoted(cut(dryRun.join(','), MAX_WORD_LENGTH))}`;
  if (warnings.length > 0) text += `,"audit.selfsame.io/warnings":${json(warningsText(warnings))}`;
  if (dropped > 0) text += `,"audit.selfsame.io/dropped-before":"${dropped}"`;
  return text.startsWith(',') ? text.slice(1) : text;
}

function decisionText({ decision, code }: AuditRecord): string {
  // Somebody may have been refused before the request itself was judged: to act in somebody else's name.
  if (decision === undefined && code !== 403) return '';
  const answer = decision?.allowed === true ? 'allow' : 'forbid';
  return `"authorization.k8s.io/decision":"${answer}","authorization.k8s.io/reason":${quoted(decision?.reason ?? '')}`;
}

/** A list as a text: the values of annotations are texts. */
function warningsText(warnings: readonly string[]): string {
  return JSON.stringify(warnings.slice(0, MAX_WARNINGS).map((text) => cut(text, MAX_MESSAGE_LENGTH)));
}

/** RFC 3339 with microseconds. */
function microTime(ms: number): string {
  const micros = Math.floor((ms % 1000) * 1000);
  return `${timestamp(ms).slice(0, -1)}.${String(micros).padStart(6, '0')}Z`;
}
