/** One tool: its form, a call, and the result as text, never as anything that runs. */

import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { address, hrefOf, pathOf } from '../address.ts'
import { firstValue, type Schema, withoutSecrets } from '../form/form-schema.ts'
import { SchemaForm } from '../form/schema-form.tsx'
import { ask } from '../interface.ts'
import { parseJson, readJson } from '../json.ts'
import { Field, Form, useDraft } from '../parts/field.tsx'
import { Foreign } from '../parts/foreign.tsx'
import { Action } from '../parts/parts.tsx'
import { Code, commandOf, curlOf } from '../parts/request.tsx'
import { Result, type ToolResult } from '../parts/result.tsx'
import { Problem, Room } from '../parts/room.tsx'
import { useAction, useResource } from '../resource.ts'

interface ToolBody {
  readonly name: string
  readonly description?: string
  readonly inputSchema?: Schema
}

export function Tool() {
  const [, namespace = '', id = '', , name = ''] = address.value.path
  const path = pathOf('connect', namespace, id, '.tools', name)
  const tool = useResource<ToolBody>(path)
  return (
    <Room name="tool" title={name} id={name} resource={tool}>
      <p class="muted">
        Tool of{' '}
        <a href={hrefOf('connections', namespace, id)}>
          {namespace}/{id}
        </a>
      </p>
      <Foreign as="p" text={tool.data?.description ?? ''} />
      {tool.data !== undefined && <Call {...{ namespace, id, name, path }} schema={tool.data.inputSchema ?? {}} />}
    </Room>
  )
}

interface CallProps {
  readonly namespace: string
  readonly id: string
  readonly name: string
  readonly path: string
  readonly schema: Schema
}

/** Values of a form that are painted at first. Past it: they are opened on demand. */
const valuesMax = 300

function Call({ namespace, id, name, path, schema }: CallProps) {
  // Arguments are an object, even where a schema leaves that out.
  const root: Schema = { type: 'object', ...schema }
  const first = useMemo(() => firstValue(root, root, true) ?? {}, [schema])
  const [draft, setDraft] = useDraft(path, JSON.stringify(first))
  const [value, setValue] = useState<unknown>(() => parseJson(draft))
  const [raw, setRaw] = useState<string | undefined>()
  const [isTried, setTried] = useState(false)
  const change = (next: unknown) => {
    setValue(next)
    setDraft(JSON.stringify(withoutSecrets(next, root, root)))
  }
  const typeRaw = (text: string) => {
    setRaw(text)
    const read = readJson(text)
    if (read !== undefined) change(read)
  }
  const stop = useRef(new AbortController())
  const call = useAction(async () => {
    stop.current = new AbortController()
    const started = performance.now()
    const result = await ask<ToolResult>('POST', path, { body: value ?? {}, signal: stop.current.signal })
    return { result, ms: Math.round(performance.now() - started) }
  })
  const refused = refusedBy(call.error)
  useEffect(() => {
    if (refused !== undefined) document.querySelector<HTMLElement>(`[data-field="${CSS.escape(refused.at)}"]`)?.focus()
  }, [call.error])
  const outcome = call.done?.result.isError === true ? 'tool_error' : 'ok'
  const body = JSON.stringify(withoutSecrets(value ?? {}, root, root))
  const command = commandOf({ words: ['tool', 'call'], options: { namespace }, operands: [`${id}.${name}`, body] })
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: parseJson(body) } }
  return (
    <>
      <div class="beside">
        <Form onTry={() => setTried(true)} onSend={() => void call.run()}>
          {/* It stays, with what its fields hold: a text that is no JSON, and what somebody has opened. */}
          <div hidden={raw !== undefined}>
            <SchemaForm
              {...{ schema: root, value, at: '', label: name, isRequired: true, inside: [root] }}
              form={{ root, isTried, refused, left: { count: valuesMax } }}
              onChange={change}
            />
          </div>
          {raw !== undefined && (
            <Field
              name="raw"
              label="Arguments as JSON"
              value={raw}
              onInput={typeRaw}
              type="json"
              wrong={readJson(raw) === undefined ? 'is not JSON' : undefined}
              isShown
            />
          )}
          <Action name="call" type="submit" isMain isBusy={call.isBusy} label="Call" />{' '}
          {call.isBusy && <Action name="cancel" onClick={() => stop.current.abort()} label="Cancel" />}{' '}
          <Action
            name="raw"
            reason={raw !== undefined && readJson(raw) === undefined ? 'The text is not JSON yet' : undefined}
            onClick={() => setRaw(raw === undefined ? JSON.stringify(value ?? {}, null, 2) : undefined)}
            label={raw === undefined ? 'As JSON' : 'As a form'}
          />
        </Form>
        <div>
          {call.error?.name === 'AbortError' ? (
            <p role="status">You cancelled the call. The server may have run it all the same.</p>
          ) : (
            call.error !== undefined && <Problem error={call.error} again={() => void call.run()} />
          )}
          {call.done !== undefined && (
            <section data-part="result" data-outcome={outcome} aria-live="polite">
              <h2>
                {outcome === 'tool_error' ? 'The tool reports an error' : 'Result'}{' '}
                <small class="muted">{call.done.ms} ms</small>
              </h2>
              <Result result={call.done.result} />
            </section>
          )}
        </div>
      </div>
      <details>
        <summary>This call as curl, as a command and as an MCP request</summary>
        <Code part="curl" text={curlOf({ method: 'POST', path, body })} />
        {command !== undefined && <Code part="command" text={command} />}
        <Code part="mcp" text={JSON.stringify(message, null, 2)} />
      </details>
    </>
  )
}

/** The value that a refusal names first: `days: must be …`, `list[0].name: …`. */
function refusedBy(error: Error | undefined): { at: string; words: string } | undefined {
  const [, path = '', words = ''] = /^([\w$-]+(?:\.[\w$-]+|\[\d+\])*): ([^]*)$/.exec(error?.message ?? '') ?? []
  return path === '' ? undefined : { at: `/${path.replace(/\[(\d+)\]/g, '/$1').replaceAll('.', '/')}`, words }
}
