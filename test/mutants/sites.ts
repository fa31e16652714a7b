/**
 * Where a program can be changed so that it says something else: one operator, one condition, one literal or one
 * statement at a time. Found in the syntax tree of the project's own compiler, so types, imports, texts and comments
 * are left alone.
 */

import { join } from 'node:path'
import {
  isBinaryExpression,
  isConditionalExpression,
  isExpressionStatement,
  isFunctionLikeDeclaration,
  isIfStatement,
  isImportDeclaration,
  isNumericLiteral,
  isPostfixUnaryExpression,
  isPrefixUnaryExpression,
  isReturnStatement,
  isStatement,
  isStringLiteral,
  isTemplateExpression,
  isThrowStatement,
  isTypeNode,
  isWhileStatement,
  type Node,
  type SourceFile,
  SyntaxKind,
} from 'typescript/unstable/ast'
import { API } from 'typescript/unstable/async'

export interface Mutant {
  /** Below the root. */
  readonly file: string
  readonly line: number
  readonly column: number
  /** The first line of the statement that it stands in. */
  readonly statementLine: number
  readonly lastLine: number
  readonly start: number
  readonly end: number
  readonly replacement: string
  /** The lines that change, as they were and as they are, in single spaces. */
  readonly before: string
  readonly after: string
}

const otherOperators: Readonly<Record<string, readonly string[]>> = {
  '===': ['!=='],
  '!==': ['==='],
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '&&': ['||'],
  '||': ['&&'],
  '+': ['-'],
  '-': ['+'],
  '+=': ['-='],
  '-=': ['+='],
}
const otherSteps: Readonly<Record<string, string>> = { '++': '--', '--': '++' }

/** Of the files, in their order and from the top down in each. */
export async function mutantsOf(root: string, files: readonly string[]): Promise<Mutant[]> {
  const compiler = new API({ cwd: root })
  try {
    const snapshot = await compiler.updateSnapshot({ openProjects: [join(root, 'tsconfig.json')] })
    const [project] = snapshot.getProjects()
    const mutants: Mutant[] = []
    for (const file of files) {
      const tree = await project?.program.getSourceFile(join(root, file))
      if (tree === undefined) throw new Error(`${file} is not part of the project`)
      mutants.push(...mutantsOfTree(file, tree.text, tree))
    }
    return mutants
  } finally {
    await compiler.close()
  }
}

interface Place {
  readonly statementStart: number
  readonly isInFunction: boolean
}

function mutantsOfTree(file: string, text: string, tree: SourceFile): Mutant[] {
  const mutants: Mutant[] = []
  const lineOf = (index: number) => text.slice(0, index).split('\n').length

  function add({ statementStart }: Place, start: number, end: number, replacement: string): void {
    const from = text.lastIndexOf('\n', start - 1) + 1
    const lineEnd = text.indexOf('\n', end)
    const to = lineEnd === -1 ? text.length : lineEnd
    mutants.push({
      file,
      line: lineOf(start),
      column: start - from + 1,
      statementLine: lineOf(statementStart),
      lastLine: lineOf(end),
      start,
      end,
      replacement,
      before: inSingleSpaces(text.slice(from, to)),
      after: inSingleSpaces(text.slice(from, start) + replacement + text.slice(end, to)),
    })
  }
  const startOf = (node: Node) => node.getStart(tree)
  const negate = (place: Place, node: Node) => {
    const start = startOf(node)
    // What is a negation or a lone comparison is turned around where that stands.
    if (isPrefixUnaryExpression(node) && node.operator === SyntaxKind.ExclamationToken) return
    if (isBinaryExpression(node) && text.slice(startOf(node.operatorToken), node.operatorToken.end) in otherOperators)
      return
    add(place, start, node.end, `!(${text.slice(start, node.end)})`)
  }

  function visit(node: Node, around: Place): void {
    if (isTypeNode(node) || isImportDeclaration(node)) return
    const start = startOf(node)
    const place = {
      statementStart: isStatement(node) ? start : around.statementStart,
      isInFunction: around.isInFunction || isFunctionLikeDeclaration(node),
    }
    if (isBinaryExpression(node)) {
      const { operatorToken, left, right } = node
      const operator = text.slice(startOf(operatorToken), operatorToken.end)
      const isOfTexts =
        operator === '+' && [left, right].some((one) => isStringLiteral(one) || isTemplateExpression(one))
      for (const other of isOfTexts ? [] : (otherOperators[operator] ?? []))
        add(place, startOf(operatorToken), operatorToken.end, other)
    } else if (isPostfixUnaryExpression(node) || isPrefixUnaryExpression(node)) {
      const operator = text.slice(
        ...(isPostfixUnaryExpression(node) ? [node.operand.end, node.end] : [start, startOf(node.operand)]),
      )
      const other = otherSteps[operator]
      if (other !== undefined) add(place, start, node.end, text.slice(start, node.end).replace(operator, other))
      if (operator === '!') add(place, start, start + 1, '')
    } else if (isIfStatement(node) || isWhileStatement(node)) negate(place, node.expression)
    else if (isConditionalExpression(node)) negate(place, node.condition)
    else if (node.kind === SyntaxKind.TrueKeyword) add(place, start, node.end, 'false')
    else if (node.kind === SyntaxKind.FalseKeyword) add(place, start, node.end, 'true')
    else if (isNumericLiteral(node) && place.isInFunction) {
      const value = Number(node.text)
      if (Number.isSafeInteger(value)) add(place, start, node.end, String(value + 1))
    } else if (isThrowStatement(node) || (isExpressionStatement(node) && place.isInFunction))
      add(place, start, node.end, '{}')
    // A literal is turned around where it stands, and nothing is what `undefined` is.
    else if (isReturnStatement(node) && node.expression !== undefined) {
      if (!['true', 'false', 'undefined'].includes(node.expression.getText(tree))) add(place, start, node.end, 'return')
    }
    node.forEachChild((child) => visit(child, place))
  }
  tree.forEachChild((child) => visit(child, { statementStart: 0, isInFunction: false }))
  return mutants
}

function inSingleSpaces(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim()
}

/**
 * `count` of them, those whose hash is lowest, in their order. The choice depends on each one alone: a change of the
 * source elsewhere leaves it nearly as it was.
 */
export function sample<T>(all: readonly T[], count: number, seed: number, nameOf: (one: T) => string): T[] {
  const hashes = new Map(all.map((one, index) => [index, Bun.hash(`${seed} ${nameOf(one)}`)]))
  const lowest = [...hashes].sort(([, a], [, b]) => (a < b ? -1 : 1)).slice(0, count)
  const chosen = new Set(lowest.map(([index]) => index))
  return all.filter((_, index) => chosen.has(index))
}
