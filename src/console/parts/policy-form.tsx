/** A policy as a form, beside its JSON. A value that no field can show stays as it is in the JSON. */

import { useRef, useState } from 'preact/hooks'
import { asObject } from '../json.ts'
import { Field } from './field.tsx'
import { Action } from './parts.tsx'

type Constraint = Readonly<Record<string, unknown>>

interface Form {
  /** The words for a text that this field cannot read: it changes nothing, and no token is minted. */
  readonly wrongWith?: (shown: string) => string | undefined
  /** Undefined: no field can show it. */
  readonly written: (value: unknown) => string | undefined
  /** Undefined: it is left out. `before`: the value until now. */
  readonly read: (shown: string, before: unknown) => unknown
}

const texts = (value: unknown): readonly string[] | undefined => {
  const list = [value ?? []].flat()
  return list.every((one) => typeof one === 'string') ? (list as string[]) : undefined
}
const oneOrMany = (list: readonly string[]) => (list.length > 1 ? list : list[0])

const names: Form = {
  written: (value) => texts(value)?.join(', '),
  read: (text) => oneOrMany(text.split(/[\s,]+/).filter(Boolean)),
}
const lifetime: Form = {
  wrongWith: (text) => (/^(?:\d{1,9}[smh]?)?$/.test(text) ? undefined : 'must be digits, with s, m or h behind them'),
  written: (value) => (value === undefined ? '' : typeof value === 'object' ? undefined : String(value)),
  read: (text) => (text === '' ? undefined : /^\d{1,9}$/.test(text) ? Number(text) : text),
}
const record = (value: unknown = {}) => asObject(value)
const filled = (members: Constraint) => {
  const given = Object.entries(members).filter(([, one]) => one !== undefined)
  return given.length === 0 ? undefined : Object.fromEntries(given)
}
const toolPath = 'params.name'
/** The one path of `rpcReqMatch` that nearly each policy has. */
const tools: Form = {
  written: (value) => {
    const members = record(value)
    const pattern = members && (members[toolPath] ?? '')
    return typeof pattern === 'string' ? pattern : undefined
  },
  read: (pattern, before) => filled({ ...record(before), [toolPath]: pattern === '' ? undefined : pattern }),
}
/** `key=value`, a line for each. */
const pairs: Form = {
  wrongWith: (text) =>
    text.split('\n').every((line) => line.trim() === '' || /^[^=]+=/.test(line))
      ? undefined
      : 'needs KEY=VALUE in each line',
  written: (value) => {
    const members = Object.entries(record(value) ?? {})
    const isShown = members.every(
      ([name, one]) => typeof one === 'string' && !/[=\n]/.test(name) && !one.includes('\n'),
    )
    return isShown && record(value) ? members.map((pair) => pair.join('=')).join('\n') : undefined
  },
  read: (text) => {
    const lines = text.split('\n').filter((line) => line.includes('='))
    return filled(
      Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)])),
    )
  },
}
/** The paths of `rpcReqMatch` beside that of the tools. */
const otherPaths: Form = {
  ...pairs,
  written: (value) => {
    const { [toolPath]: _, ...others } = record(value) ?? {}
    return record(value) && pairs.written(others)
  },
  read: (text, before) => filled({ [toolPath]: record(before)?.[toolPath], ...(pairs.read(text, before) as object) }),
}

const fields = [
  ['namespaces', 'Namespaces', names, 'text', 'like acme, acme-ops; empty: all that you have'],
  ['metadata', 'Metadata of connections', pairs, 'lines', 'like team=crm, a line for each; connectionId=ID for one'],
  ['rpcReqMatch/params.name', 'Tools', tools, 'text', 'a pattern of names, like ^(?:get|list)_.*$; empty: all'],
  [
    'rpcReqMatch',
    'Other parts of MCP requests',
    otherPaths,
    'lines',
    'PATH=PATTERN, like params.arguments.city=^Paris$',
  ],
  ['ttl', 'Lifetime', lifetime, 'text', 'like 30m or 2h; digits alone are seconds; empty: one hour'],
] as const

const choices = [
  ['operations', 'Operations', ['read', 'write', 'execute']],
  ['resources', 'Resources', ['connections', 'servers', 'namespaces', 'skills']],
] as const

interface PolicyFormProps {
  /** Undefined: the JSON cannot be read, and the form stays as it was. */
  readonly policy: readonly unknown[] | undefined
  readonly onChange: (policy: readonly unknown[]) => void
}

export function PolicyForm({ policy: read, onChange }: PolicyFormProps) {
  const last = useRef<readonly unknown[]>([])
  last.current = read ?? last.current
  const policy = last.current
  const add = () => onChange([...policy, { operations: 'read' }])
  return (
    <fieldset class="whole" disabled={read === undefined}>
      {policy.map((constraint, index) => (
        <fieldset key={index}>
          <legend>Constraint {index + 1}</legend>
          <ConstraintForm
            constraint={(constraint ?? {}) as Constraint}
            at={`/${index}`}
            onChange={(next) => onChange(policy.with(index, next))}
          />
          {policy.length > 1 && (
            <Action
              name="remove"
              for={`/${index}`}
              onClick={() => onChange(policy.toSpliced(index, 1))}
              label="Remove"
            />
          )}
        </fieldset>
      ))}
      <Action name="add" for="" onClick={add} label="Add a constraint" />
      {read === undefined && <small class="muted"> follows as soon as the JSON can be read</small>}
    </fieldset>
  )
}

interface ConstraintProps {
  readonly constraint: Constraint
  readonly at: string
  readonly onChange: (constraint: Constraint) => void
}

function ConstraintForm({ constraint, at, onChange }: ConstraintProps) {
  const change = (name: string, value: unknown) => {
    const { [name]: _, ...others } = constraint
    onChange(value === undefined ? others : { ...constraint, [name]: value })
  }
  return (
    <>
      {choices.map(([name, label, options]) => (
        <Choices
          key={name}
          {...{ label, options, at: `${at}/${name}` }}
          chosen={texts(constraint[name])}
          onChange={(chosen) => change(name, oneOrMany(chosen))}
        />
      ))}
      <div class="beside">
        {fields.map(([path, label, form, type, hint]) => {
          const [name = path] = path.split('/')
          return (
            <Value
              key={path}
              {...{ form, label, type, hint, at: `${at}/${path}`, value: constraint[name] }}
              onChange={(value) => change(name, value)}
            />
          )
        })}
      </div>
    </>
  )
}

interface ChoicesProps {
  readonly at: string
  readonly label: string
  readonly options: readonly string[]
  readonly chosen: readonly string[] | undefined
  readonly onChange: (chosen: readonly string[]) => void
}

/** None chosen: it restricts nothing. */
function Choices({ at, label, options, chosen = [], onChange }: ChoicesProps) {
  return (
    <fieldset class="choices">
      <legend>{label}</legend>
      {options.map((option) => (
        <label key={option}>
          <input
            type="checkbox"
            data-field={`${at}/${option}`}
            checked={chosen.includes(option)}
            onChange={() => onChange(options.filter((one) => (one === option) !== chosen.includes(one)))}
          />{' '}
          {option}
        </label>
      ))}
      {chosen.length === 0 && <small class="muted">all</small>}
    </fieldset>
  )
}

interface ValueProps {
  readonly form: Form
  readonly at: string
  readonly label: string
  readonly type: 'text' | 'lines'
  readonly hint: string
  readonly value: unknown
  readonly onChange: (value: unknown) => void
}

function Value({ form, at, label, type, hint, value, onChange }: ValueProps) {
  const written = form.written(value)
  const [typed, setTyped] = useState(written ?? '')
  if (written === undefined)
    return (
      <p>
        {label}: <small class="muted">only its JSON can show this value</small>
      </p>
    )
  const wrong = form.wrongWith?.(typed)
  const isOwn = wrong !== undefined || JSON.stringify(form.read(typed, value)) === JSON.stringify(value)
  return (
    <Field
      {...{ label, type, hint, wrong, name: at, value: isOwn ? typed : written }}
      onInput={(text) => {
        setTyped(text)
        if (form.wrongWith?.(text) === undefined) onChange(form.read(text, value))
      }}
    />
  )
}

/** The text of a policy as the composer writes it. */
export const policyText = (policy: readonly unknown[]) =>
  `[\n${policy.map((one) => `  ${JSON.stringify(one, null, 1).replace(/\n\s*/g, ' ')}`).join(',\n')}\n]`
