/** Event, in its core/v1 form, and the type of its events.k8s.io/v1 form. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { formatAge } from '#engine/registry/kinds/shared/columns.ts';
import { checkQualifiedName } from '#engine/registry/kinds/shared/formats.ts';
import { objectReference } from '#engine/registry/kinds/core/references.ts';
import { type FieldError, invalidValue, requiredValue } from '#kube/field-error.ts';
import type { KubeObject } from '#kube/meta.ts';
import { type Infer, int32, microTime, overrideOptions, str, time } from '#kube/schema-dsl.ts';

const eventSeries = apiType('core.v1.EventSeries', 'A series of similar events.', {
  count: optional(1, int32(), 'Number of occurrences so far.'),
  lastObservedTime: optional(2, microTime(), 'Time of the last occurrence.', { message: 'MicroTime' }),
});

const eventSource = apiType('core.v1.EventSource', 'The source of an event.', {
  component: optional(1, str(), 'Component that generated the event.'),
  host: optional(2, str(), 'Name of the node where the event was generated.'),
});

const event = apiType('core.v1.Event', 'A report of an event somewhere in the cluster.', {
  involvedObject: required(2, overrideOptions(objectReference, { default: {} }), 'Object that the event is about.'),
  reason: optional(3, str(), 'Brief CamelCase reason for the event.'),
  message: optional(4, str(), 'Human-readable description of the event.'),
  source: optional(5, overrideOptions(eventSource, { default: {} }), 'Component that reports the event.'),
  firstTimestamp: optional(6, time(), 'Time when the event was first recorded.'),
  lastTimestamp: optional(7, time(), 'Time of the most recent occurrence.'),
  count: optional(8, int32(), 'Number of times the event occurred.'),
  type: optional(9, str(), 'Type of the event: Normal or Warning.'),
  eventTime: optional(10, microTime(), 'Time when the event was first observed, in microseconds.', {
    message: 'MicroTime',
  }),
  series: pointer(11, eventSeries, 'Series of events that the event belongs to.'),
  action: optional(12, str(), 'Action that was taken or failed.'),
  related: pointer(13, objectReference, 'Secondary object of the event.'),
  reportingComponent: optional(14, str({ default: '' }), 'Name of the controller that reports the event.', {
    omitEmpty: false,
  }),
  reportingInstance: optional(15, str({ default: '' }), 'ID of the controller instance.', { omitEmpty: false }),
});

const newEventSeries = apiType('events.v1.EventSeries', 'A series of similar events.', {
  count: required(1, int32(), 'Number of occurrences so far.'),
  lastObservedTime: required(2, microTime(), 'Time of the last occurrence.', { message: 'MicroTime' }),
});

/** Only decoded: the engine does not serve events.k8s.io. */
export const newEventSchema = apiType('events.v1.Event', 'A report of an event somewhere in the cluster.', {
  eventTime: required(2, microTime(), 'Time when the event was first observed.', { message: 'MicroTime' }),
  series: pointer(3, newEventSeries, 'Series of events that the event belongs to.'),
  reportingController: optional(4, str(), 'Name of the controller that reports the event.'),
  reportingInstance: optional(5, str(), 'ID of the controller instance.'),
  action: optional(6, str(), 'Action that was taken or failed.'),
  reason: optional(7, str(), 'Brief CamelCase reason for the event.'),
  regarding: optional(8, objectReference, 'Object that the event is about.'),
  related: pointer(9, objectReference, 'Secondary object of the event.'),
  note: optional(10, str(), 'Human-readable description of the event.'),
  type: optional(11, str(), 'Type of the event: Normal or Warning.'),
  deprecatedSource: optional(12, eventSource, 'Component that reports the event.'),
  deprecatedFirstTimestamp: optional(13, time(), 'Time when the event was first recorded.'),
  deprecatedLastTimestamp: optional(14, time(), 'Time of the most recent occurrence.'),
  deprecatedCount: optional(15, int32(), 'Number of times the event occurred.'),
});

type Event = KubeObject & Infer<typeof event>;

export const events = defineKind({
  kind: 'Event',
  plural: 'events',
  namespaced: true,
  shortNames: ['ev'],
  // Event names start with the name of an object of any kind.
  nameRule: 'path-segment',
  schema: event,
  columns: [
    { name: 'Last Seen', value: lastSeen },
    { name: 'Type', value: ({ type }) => type ?? '' },
    { name: 'Reason', value: ({ reason }) => reason ?? '' },
    {
      name: 'Object',
      description: 'Object that the event is about.',
      value: ({ involvedObject: { kind = '', name } }) => (name ? `${kind.toLowerCase()}/${name}` : kind.toLowerCase()),
    },
    { name: 'Subobject', priority: 1, value: ({ involvedObject }) => involvedObject.fieldPath ?? '' },
    { name: 'Source', priority: 1, value: sourceText },
    { name: 'Message', value: ({ message = '' }) => message.trim() },
    { name: 'First Seen', priority: 1, value: firstSeen },
    { name: 'Count', priority: 1, value: ({ series, count }) => series?.count ?? (count || 1) },
    { name: 'Name', format: 'name', priority: 1, value: ({ metadata }) => metadata.name },
  ],
  selectableFields: {
    'involvedObject.kind': ({ involvedObject }) => involvedObject.kind ?? '',
    'involvedObject.namespace': ({ involvedObject }) => involvedObject.namespace ?? '',
    'involvedObject.name': ({ involvedObject }) => involvedObject.name ?? '',
    'involvedObject.uid': ({ involvedObject }) => involvedObject.uid ?? '',
    'involvedObject.apiVersion': ({ involvedObject }) => involvedObject.apiVersion ?? '',
    'involvedObject.resourceVersion': ({ involvedObject }) => involvedObject.resourceVersion ?? '',
    'involvedObject.fieldPath': ({ involvedObject }) => involvedObject.fieldPath ?? '',
    reason: ({ reason }) => reason ?? '',
    reportingComponent: ({ reportingComponent }) => reportingComponent ?? '',
    source: ({ source, reportingComponent }) => source?.component || (reportingComponent ?? ''),
    type: ({ type }) => type ?? '',
  },
  validate: checkEvent,
});

function firstSeen({ firstTimestamp, eventTime }: Event, now: number): string {
  return formatAge(firstTimestamp ?? eventTime, now);
}

function lastSeen(object: Event, now: number): string {
  const { series, lastTimestamp } = object;
  if (series !== undefined) return formatAge(series.lastObservedTime, now);
  return lastTimestamp === undefined ? firstSeen(object, now) : formatAge(lastTimestamp, now);
}

function sourceText({ source, reportingComponent = '', reportingInstance = '' }: Event): string {
  const component = source?.component || reportingComponent;
  const instance = source?.host || reportingInstance;
  return instance === '' ? component : `${component}, ${instance}`;
}

const MISMATCH = 'does not match event.namespace';
const SHORT_MAX = 128;
const MESSAGE_MAX = 1024;

/** Old events carry counts and timestamps, new ones an eventTime; new ones have stricter rules. */
function checkEvent(object: Event): FieldError[] {
  const { metadata, involvedObject, eventTime } = object;
  const own = metadata.namespace ?? '';
  const about = involvedObject.namespace ?? '';
  const homes = eventTime === undefined ? ['', 'default'] : ['default', 'kube-system'];
  const astray = about === '' ? !homes.includes(own) : eventTime === undefined && about !== own;
  const errors = astray ? [invalidValue('involvedObject.namespace', about, MISMATCH)] : [];
  return eventTime === undefined ? errors : [...errors, ...checkNewEvent(object)];
}

function checkNewEvent(object: Event): FieldError[] {
  const { reportingComponent = '', reportingInstance, action, reason, message = '' } = object;
  const errors: FieldError[] = [];
  if (reportingComponent === '') errors.push(requiredValue('reportingComponent'));
  errors.push(...checkQualifiedName('reportingComponent', reportingComponent));
  for (const [field, text = ''] of Object.entries({ reportingInstance, action, reason })) {
    if (text === '') errors.push(requiredValue(field));
    if (text.length > SHORT_MAX) errors.push(invalidValue(field, '', `can have at most ${SHORT_MAX} characters`));
  }
  if (message.length > MESSAGE_MAX) {
    errors.push(invalidValue('message', '', `can have at most ${MESSAGE_MAX} characters`));
  }
  return errors;
}

const EVENT_COLLECTIONS: ReadonlySet<string> = new Set(['events', 'events.events.k8s.io']);

/** Events of both groups. Quotas do not count them, and they expire. */
export const isEventCollection = (collection: string): boolean => EVENT_COLLECTIONS.has(collection);
