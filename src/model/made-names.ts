/** Names that are made up, for connections and namespaces that are created without one. */

import { randomInt } from 'node:crypto'

const qualities =
  'able amber apt bold brave bright brisk calm candid clean clear clever cosy crisp curious deft eager early easy fair fast fine firm fleet fond free fresh gentle glad golden grand happy hardy honest jolly keen kind lively loyal lucky mellow merry mild neat noble patient plain polite prompt proud quick quiet ready rosy sage sharp silver smooth snug steady sunny swift tidy true vivid warm wise witty'.split(
    ' ',
  )
const animals =
  'badger bat bear beaver bee bison boar camel cat cod cow crab crane crow deer dog dolphin dove duck eagle eel elk falcon finch fox frog gecko goat goose gull hare hawk hen heron horse ibex jay kite koala lark lemur lion llama lynx mole moose moth mouse newt otter owl ox panda perch pony puffin quail rabbit raven robin rook seal shark sheep shrew skunk snail stork swan tern tiger toad trout vole wasp whale wolf wren yak zebra'.split(
    ' ',
  )
const lowerCase = '0123456789abcdefghijklmnopqrstuvwxyz'
const base62 = `${lowerCase}ABCDEFGHIJKLMNOPQRSTUVWXYZ`

/** Like `clever-dolphin-a9X3`; one of 80 billion, and not guaranteed to be unused. */
export function newConnectionId(): string {
  return `${pick(qualities)}-${pick(animals)}-${four(base62)}`
}

/** Like `otter-x7k2`; one of 130 million, and not guaranteed to be unused. */
export function newNamespaceName(): string {
  return `${pick(animals)}-${four(lowerCase)}`
}

function pick(words: readonly string[] | string): string {
  return words[randomInt(words.length)] as string
}

function four(characters: string): string {
  return Array.from({ length: 4 }, () => pick(characters)).join('')
}
