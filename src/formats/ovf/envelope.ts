/** The sections of an OVF, found in the ways of oVirt and of the standard, and who wrote it. */
import { quoted, repeated, type Findings } from '#formats/faults.ts';
import { OVF, OWN, XSI } from '#formats/ovf/vocabulary.ts';
import { attributeOf, childNamed, childrenNamed, type XmlElement } from '#lib/xml.ts';

export interface Envelope {
  readonly references?: XmlElement;
  readonly disks?: XmlElement;
  /** Content with oVirt, VirtualSystem in the standard. */
  readonly system: XmlElement;
  readonly operatingSystem?: XmlElement;
  readonly hardware?: XmlElement;
  readonly product: 'Selfsame' | 'oVirt' | undefined;
  /** Of the product: 3.0.0.0. */
  readonly version?: string;
  /** Elements of the system by their name in small letters and without `_`, because oVirt wrote them in both ways. */
  readonly settings: ReadonlyMap<string, XmlElement>;
}

const WITHOUT_MEANING = new Set(['NetworkSection', 'Info', 'AnnotationSection', 'DeploymentOptionSection', 'Strings']);
/** Of the settings of oVirt, those that are read. */
const TAKEN = new Set([
  ...['name', 'section', 'info', 'operatingsystemsection', 'virtualhardwaresection', 'defaultbootsequence', 'biostype'],
  ...['customemulatedmachine', 'customcpuname', 'serialnumberpolicy', 'customserialnumber', 'note'],
  ...['clustercompatibilityversion', 'generation', 'creationdate', 'exportdate', 'origin', 'vmtype'],
]);

const ONCE = new Set(['name', 'defaultbootsequence', 'biostype', 'customemulatedmachine', 'customserialnumber']);

/** Undefined where there is no system to read; the findings say why. */
export function openEnvelope(root: XmlElement, findings: Findings): Envelope | undefined {
  if (root.name !== 'Envelope' || root.namespace.replace(/\/$/, '') !== OVF) {
    findings.fault(`the root element is ${quoted(root.name)}; expected an Envelope of OVF 1`);
    return undefined;
  }
  const sections = new Map<string, XmlElement>();
  const systems: XmlElement[] = [];
  for (const child of root.children) {
    const kind = kindOf(child);
    if (kind === 'VirtualSystem') systems.push(child);
    else if (kind === 'VirtualSystemCollection') findings.fault('it holds a collection of machines; expected one');
    else if (sections.has(kind)) findings.fault(`there are two of ${kind}`);
    else sections.set(kind, child);
    if (!['VirtualSystem', 'References', 'DiskSection'].includes(kind) && !WITHOUT_MEANING.has(kind)) {
      findings.note(`${kind} is not taken over`);
    }
  }
  const [system] = systems;
  if (system === undefined || systems.length > 1) {
    findings.fault(`it holds ${systems.length} machines; expected one`);
    return undefined;
  }
  const inner = innerSections(system, findings);
  const settings = new Map(system.children.map((child) => [wordOf(child.name), child]));
  const isOwn = attributeOf(root, 'version', OWN) !== undefined;
  const isOvirt =
    isOwn ||
    root.namespace !== OVF ||
    settings.has('defaultbootsequence') ||
    saysEngine(inner.get('VirtualHardwareSection'));
  for (const word of repeated(system.children.map(({ name }) => wordOf(name)))) {
    if (ONCE.has(word)) findings.fault(`${settings.get(word)?.name} is there twice`);
  }
  noteSettings(settings, findings);
  const version =
    attributeOf(root, 'version', isOwn ? OWN : root.namespace) ??
    settings.get('clustercompatibilityversion')?.text.trim();
  return {
    references: sections.get('References'),
    disks: sections.get('DiskSection'),
    system,
    operatingSystem: inner.get('OperatingSystemSection'),
    hardware: inner.get('VirtualHardwareSection'),
    product: isOwn ? 'Selfsame' : isOvirt ? 'oVirt' : undefined,
    ...(version !== undefined && version !== '' && { version }),
    settings,
  };
}

function innerSections(system: XmlElement, findings: Findings): Map<string, XmlElement> {
  const inner = new Map<string, XmlElement>();
  for (const child of system.children) {
    const kind = kindOf(child);
    if (!kind.endsWith('Section')) continue;
    if (inner.has(kind)) findings.fault(`there are two of ${kind}`);
    else inner.set(kind, child);
    const isRead = kind === 'OperatingSystemSection' || kind === 'VirtualHardwareSection';
    if (!isRead && !WITHOUT_MEANING.has(kind)) findings.note(`${kind} is not taken over`);
  }
  if (!inner.has('VirtualHardwareSection')) findings.fault('there is no VirtualHardwareSection');
  return inner;
}

/** `<Section xsi:type="ovf:DiskSection_Type">` and `<DiskSection>` are the same; so are Content and VirtualSystem. */
function kindOf(element: XmlElement): string {
  const type = attributeOf(element, 'type', XSI);
  if (type === undefined || (element.name !== 'Section' && element.name !== 'Content')) return element.name;
  return (type.split(':').at(-1) ?? '').replace(/_Type$/, '');
}

function wordOf(name: string): string {
  return name.toLowerCase().replaceAll('_', '');
}

function saysEngine(hardware: XmlElement | undefined): boolean {
  const type = childNamed(childNamed(hardware, 'System'), 'VirtualSystemType')?.text ?? '';
  return /^\s*(?:ENGINE|RHEVM|RHEV|oVirt)\b/i.test(type);
}

function noteSettings(settings: ReadonlyMap<string, XmlElement>, findings: Findings): void {
  const isTaken = (word: string, { namespace }: XmlElement) =>
    TAKEN.has(word) || (word === 'state' && namespace === OWN);
  const left = [...settings].filter(([word, element]) => !isTaken(word, element) && !element.name.endsWith('Section'));
  if (left.length === 0) return;
  findings.note(`settings that are not taken over: ${left.map(([, { name }]) => name).join(', ')}`);
}

/** What our own writer said of the machine besides. */
export function ownNotes({ system }: Envelope): string[] {
  return childrenNamed(system, 'Note', OWN).map(({ text }) => text);
}
