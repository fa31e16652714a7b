/** The composer: a policy that is linted and covered while it is written, compared, explained, and minted. */

import { useEffect, useRef, useState } from 'preact/hooks'
import type { Coverage, Diff, Explanation, LintAnswer, Suggestion } from '../../model/explain.ts'
import { address, filterOf, filtersOf, hrefWith } from '../address.ts'
import { ask, Refused } from '../interface.ts'
import { parseJson, readJson } from '../json.ts'
import { Field, Filter, Form, showWrong, useDraft } from '../parts/field.tsx'
import { capital, Foreign } from '../parts/foreign.tsx'
import { Action, Copied, CopyButton, State, When, Wrong } from '../parts/parts.tsx'
import { PolicyForm, policyText } from '../parts/policy-form.tsx'
import { AsText } from '../parts/request.tsx'
import { Room } from '../parts/room.tsx'
import { useAction } from '../resource.ts'

const example = '[\n  { "operations": "execute", "ttl": "1h" }\n]'
/** Milliseconds after the last key before the policy is looked at. */
const quietMs = 500
/** Connections whose tools are listed beside the policy. Past it: they are counted. */
const listedConnections = 100

const policyOf = (text: string): readonly unknown[] => [parseJson(text)].flat()

/** Undefined: the text is not JSON. */
const readablePolicy = (text: string) => (readJson(text) === undefined ? undefined : policyOf(text))

/** The findings and the coverage of the newest text alone. */
function useAnswers(text: string, round: number) {
  const [answers, setAnswers] = useState<{ lint?: LintAnswer; coverage?: Coverage; error?: Error }>({})
  useEffect(() => {
    const stop = new AbortController()
    const { signal } = stop
    const timer = setTimeout(async () => {
      try {
        const body = { policy: policyOf(text) }
        const [lint, coverage] = await Promise.all([
          ask<LintAnswer>('POST', '/tokens/lint', { body, signal }),
          ask<Coverage>('POST', '/tokens/coverage', { body: { ...body, limit: listedConnections }, signal }),
        ])
        if (!signal.aborted) setAnswers({ lint, coverage })
      } catch (error) {
        if (!signal.aborted) setAnswers({ error: error as Error })
      }
    }, quietMs)
    return () => {
      stop.abort()
      clearTimeout(timer)
    }
  }, [text, round])
  return answers
}

export function Tokens() {
  const given = filterOf('policy')
  // A link with a policy has a draft of its own.
  const [policy, write] = useDraft(`policy ${given}`, given || example)
  const composer = useRef<HTMLElement>(null)
  const [round, setRound] = useState(0)
  const answers = useAnswers(policy, round)
  const mint = useAction(() =>
    ask<{ token: string; expiresAt: string }>('POST', '/tokens', { body: { policy: policyOf(policy) } }),
  )
  const take = useAction(async () => {
    const token = mint.done?.token
    await ask('POST', '/tokens/revoke', { body: { token } })
    return token
  })
  const suggest = useAction(async () => {
    const suggestion = await ask<Suggestion>('POST', '/tokens/suggest', { body: {} })
    if (suggestion.policy !== null) write(policyText(suggestion.policy))
    return suggestion
  })
  const minted = mint.done
  const readable = readablePolicy(policy)
  // The link has this policy and this request, and never a token.
  const link = hrefWith({ ...Object.fromEntries(address.value.query), policy }, 'tokens')
  return (
    <Room
      name="tokens"
      title="Tokens"
      actions={
        <>
          <Action name="open" onClick={() => write(example)} label="Start over" />
          <Action name="suggest" does={suggest} label="Suggest from my calls" />
        </>
      }
    >
      <Wrong error={suggest.error} />
      {suggest.done !== undefined && <Suggested suggestion={suggest.done} />}
      <div class="columns">
        <section ref={composer}>
          <PolicyForm policy={readable} onChange={(next) => write(policyText(next))} />
          <Field
            name="policy"
            label="Policy as JSON"
            value={policy}
            onInput={write}
            type="json"
            error={answers.error instanceof SyntaxError ? 'is not JSON' : wrongIn(answers.error)}
          />
          <Action
            name="mint"
            isMain
            isBusy={mint.isBusy}
            onClick={() => {
              if (!showWrong(composer.current)) void mint.run()
            }}
            label="Mint a token"
          />{' '}
          <Action name="lint" onClick={() => setRound(round + 1)} label="Check it again" />{' '}
          <span class="copied">
            <CopyButton text={`${location.origin}${link}`} label="Copy a link to it" />
          </span>
          <Wrong error={mint.error} />
          {minted !== undefined && take.done === minted.token && (
            <p role="status">
              <code>{idOf(minted.token)}</code> is revoked.
            </p>
          )}
          {minted !== undefined && take.done !== minted.token && (
            <p data-part="minted" role="status">
              Copy it now; it is never shown again. It ends <When at={minted.expiresAt} />:{' '}
              <Copied text={minted.token} /> Its id, by which you can revoke it later: <code>{idOf(minted.token)}</code>{' '}
              <Action name="remove" for="minted" isSmall does={take} label="Revoke it" />
            </p>
          )}
          <AsText request={{ method: 'POST', path: '/tokens', body: JSON.stringify({ policy: readable ?? [] }) }} />
        </section>
        <Allowed {...answers} />
      </div>
      <div class="beside">
        <Explain policy={policy} />
        <Compare policy={policy} />
      </div>
    </Room>
  )
}

/** The id in a token's claims, which are in base64url. */
const idOf = (token: string): string =>
  JSON.parse(atob((token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/'))).jti

/** The fault of the policy; undefined where postern does not answer. */
const wrongIn = (error: Error | undefined) =>
  error instanceof Refused && error.status === 0 ? undefined : error?.message

function Suggested({ suggestion }: { readonly suggestion: Suggestion }) {
  const { from, notes } = suggestion
  return (
    <div role="status">
      <p>
        {suggestion.policy === null ? 'No policy can be made of them' : 'The policy below is made'} from {from.calls}{' '}
        calls since <When at={from.since} />, of {from.tools} tools on {from.connections} connections.
      </p>
      {notes.map(({ code, words }) => (
        <Foreign key={code} as="p" class="muted" text={words} />
      ))}
    </div>
  )
}

/** The words, the findings and the tools of a policy. */
function Allowed({ lint, coverage }: ReturnType<typeof useAnswers>) {
  const summary = coverage?.summary ?? undefined
  const allowed = coverage?.connections.filter(({ verdict }) => verdict !== 'refuse') ?? []
  return (
    <section aria-live="polite">
      <h2>Allowed tools</h2>
      <p data-part="words">
        {summary === undefined || (summary.tools.total === 0 && summary.unknown > 0)
          ? 'Not known yet.'
          : `${summary.tools.allow} of ${summary.tools.total} tools on ${summary.connections.some} of ${summary.connections.total} connections${summary.complete ? '' : ', as far as was searched'}.`}
        {(summary?.tools.depends ?? 0) > 0 && ` ${summary?.tools.depends} more depend on their arguments.`}
        {(summary?.unknown ?? 0) > 0 && ` The tools of ${summary?.unknown} connections are not known.`}
      </p>
      <ul class="rows" data-part="findings">
        {lint?.findings.map((one) => (
          <li key={`${one.code} ${one.place}`}>
            <State level={one.severity} text={one.words} />
            <div>
              <Foreign as="span" class="muted" text={`${one.code} ${one.place}`} code />
            </div>
          </li>
        ))}
        {lint?.findings.length === 0 && (
          <li class="muted">Nothing is wrong with it{!lint.searched.complete && ', as far as was searched'}.</li>
        )}
      </ul>
      {coverage !== undefined && (
        <details data-part="tools">
          <summary>Which tools</summary>
          <ul class="rows">
            {allowed.map((one) => (
              <CoveredConnection key={`${one.namespace}/${one.connectionId}`} {...one} />
            ))}
          </ul>
          <p class="muted">
            {(summary?.connections.total ?? 0) - (summary?.connections.some ?? 0)} connections have none
            {summary?.complete === false && ', as far as was searched'}.
          </p>
        </details>
      )}
    </section>
  )
}

/** A connection with the tools that a policy allows there. */
function CoveredConnection({ namespace, connectionId, verdict, place, tools }: Coverage['connections'][number]) {
  const shown = tools?.filter((tool) => tool.verdict !== 'refuse') ?? []
  const refused = (tools?.length ?? 0) - shown.length
  return (
    <li data-verdict={verdict}>
      <State level={tools === null && verdict === 'depends' ? 'unknown' : verdict}>
        {namespace}/{connectionId}
      </State>{' '}
      {place !== null && <Foreign as="span" class="muted" text={place} code />}
      <div class="names">
        {tools === null && <span class="muted">its tools are not known</span>}
        {shown.map((tool) => (
          <State key={tool.name} level={tool.verdict} text={tool.name} />
        ))}
        {refused > 0 && <span class="muted">{refused} refused</span>}
      </div>
    </li>
  )
}

/** Parts of a request, with the choices for some. */
const parts: Readonly<Record<string, { readonly options?: readonly string[]; readonly nothing?: string }>> = {
  namespace: {},
  resource: { options: ['', 'connections', 'servers', 'namespaces'], nothing: 'connections, if it is a call' },
  operation: { options: ['', 'read', 'write', 'execute'], nothing: 'execute, if it is a call' },
  connection: {},
  tool: {},
}

/** Why the policy, or a token, allows or refuses a request; and the end of that token. */
function Explain({ policy }: { readonly policy: string }) {
  const args = filterOf('arguments')
  const [token, setToken] = useState('')
  const [answer, setAnswer] = useState<{ readonly of: string; readonly explanation: Explanation } | undefined>()
  // An answer to another question, or one that comes late, is not shown.
  const given = filtersOf(Object.keys(parts))
  const asked = JSON.stringify([policy, token, args, given])
  const subject = () => (token === '' ? { policy: policyOf(policy) } : { token })
  const explain = useAction(async () => {
    const request = { ...given, ...(args !== '' && { arguments: parseJson(args) }) }
    const explanation = await ask<Explanation>('POST', '/tokens/explain', { body: { ...subject(), request } })
    setAnswer({ of: asked, explanation })
  })
  // Somebody comes here from a refused call: the policy above has nothing to do with it.
  const isOfToken = filterOf('subject') === 'token'
  const reason = isOfToken && token === '' ? 'Paste the token of the call: the record does not keep it' : undefined
  useEffect(() => {
    if (isOfToken) document.querySelector<HTMLElement>('[data-field="token"]')?.focus()
  }, [isOfToken])
  const revoke = useAction(async () => {
    await ask('POST', '/tokens/revoke', { body: /^tok_/.test(token) ? { tokenId: token } : { token } })
    setToken('')
  })
  return (
    <Form
      title={isOfToken ? 'Why does a token refuse a call?' : 'Would it allow a call?'}
      onSend={() => void (reason === undefined && explain.run())}
    >
      <div class="filters">
        {Object.entries(parts).map(([name, choices]) => (
          <Filter key={name} of={name} name={`request.${name}`} label={capital(name)} {...choices} />
        ))}
      </div>
      <Filter of="arguments" name="request.arguments" label="Arguments" type="lines" hint="as JSON" />
      <Field
        name="token"
        label="Token"
        type="secret"
        value={token}
        onInput={setToken}
        hint="instead of the policy; to revoke one, its id (tok_…) is enough. It is sent in a request body and kept nowhere"
        error={revoke.error?.message}
      />
      <Action name="explain" type="submit" isBusy={explain.isBusy} reason={reason} label="Explain" />{' '}
      <Action
        name="revoke"
        does={revoke}
        reason={token === '' ? 'Paste a token, or its id, to revoke it' : undefined}
        label="Revoke this token"
      />
      {revoke.isDone && <p role="status">The token is revoked, with every token minted with it.</p>}
      <Wrong error={explain.error} />
      {answer?.of === asked && <Verdict explanation={answer.explanation} />}
    </Form>
  )
}

function Verdict({ explanation }: { readonly explanation: Explanation }) {
  const { verdict, words, outside, blocks, notes, token } = explanation
  return (
    <div data-part="verdict" data-verdict={verdict} role="status">
      <p>
        <State level={verdict} text={words} />
      </p>
      {token !== null && (
        <p class="muted">
          A token of <Foreign text={token.userId} />, {token.state}, until {token.expiresAt}.
        </p>
      )}
      <ul class="rows">
        {[...outside, ...blocks.flatMap(({ constraints }) => constraints)].map((one) => (
          <li key={one.place}>
            <State level={one.verdict}>{one.verdict}</State> <Foreign text={one.place} code />{' '}
            <Foreign text={one.words} />
          </li>
        ))}
      </ul>
      {notes.map(({ code, words: note }) => (
        <Foreign key={code} as="p" text={note} />
      ))}
    </div>
  )
}

/** Whether the policy allows something that another one, or a token, does not. */
function Compare({ policy }: { readonly policy: string }) {
  // A token is a secret.
  const [other, setOther] = useDraft('policy to compare', '', (text) => /^\s*[[{]/.test(text))
  const compare = useAction(async () => {
    const isToken = /^[\w-]+\.[\w-]+\.[\w-]+$/.test(other.trim())
    const old = isToken ? { token: other.trim() } : { policy: policyOf(other) }
    return ask<Diff>('POST', '/tokens/diff', { body: { old, new: { policy: policyOf(policy) } } })
  })
  const { done } = compare
  return (
    <Form title="Is it wider than another one?" onSend={() => void compare.run()}>
      <Field
        name="old"
        label="The other policy, or a token"
        value={other}
        onInput={setOther}
        type="json"
        wrong={other === '' ? 'is required' : undefined}
        error={compare.error instanceof SyntaxError ? 'is neither JSON nor a token' : compare.error?.message}
      />
      <Action name="compare" type="submit" isBusy={compare.isBusy} label="Compare" />
      {done !== undefined && (
        <div data-part="difference" role="status">
          <p>
            <State level={done.verdict === 'wider' ? 'warning' : 'ok'} text={done.words} />
          </p>
          {done.example !== null && <Foreign as="pre" text={JSON.stringify(done.example, null, 2)} />}
        </div>
      )}
    </Form>
  )
}
