"""What came: reads :class:`~cosim.engine.records.Records` and computes what people and programs are shown.

===================================================================  =======================================
``summary``                                                          ``summarize(records) -> Summary``:
                                                                     everything below, in one object
``breakdown``                                                        per rank: compute, communication,
                                                                     exposed, host, idle
``collectives``                                                      time, algbw and busbw of each kind of
                                                                     collective
``links``, ``network_statistics``                                    the busiest links, utilisation over
                                                                     time; what networks say beside: times
                                                                     of messages, queues, marks, lines
``stragglers``                                                       which ranks the others waited for
``matrices``                                                         rank x rank traffic over time
``sharing``                                                          which job has how much of a link when
``measures``                                                         one number of a run each, by name
``sweep``, ``orders``                                                what came of a sweep; which choice is
                                                                     better than which
``study``, ``alone``                                                 what a study found; each job beside its
                                                                     time alone
``networks``                                                         several networks on the same designs
``open_loop``                                                        the closed loop beside the open loop
``compare``                                                          what differs between two runs
``tables``, ``table``                                                columns as numpy, pandas, Arrow
``store``                                                            a run as files; ``stored_run`` reads
                                                                     them back
``optable``, ``collective_columns``, ``intervals``, ``link_shares``  what several of these are made from
``render/``                                                          shows all of it: text, HTML, figures,
                                                                     Perfetto
``certainty``                                                        how certain an iteration time is: an
                                                                     interval around it, and the probability
                                                                     that one job is faster than another
``critical_path``                                                    the critical path of an iteration: what
                                                                     followed what, without a gap, from its
                                                                     beginning to its end
``decision``                                                         which of several designs is best, and
                                                                     how sure that is
``differences``                                                      what differs between two runs, in
                                                                     words: each job's iteration, what
                                                                     became exposed, which links changed
``fronts``                                                           which points can't be beaten: Pareto
                                                                     fronts of losses
``hops``                                                             messages of one iteration, by whom they
                                                                     reached and when: how a collective came
                                                                     to its end on a rank
``link_users``                                                       whose traffic each link carried: the
                                                                     pairs of endpoints that the routing
                                                                     leads over it
``one_iteration``                                                    operations of one iteration of a job:
                                                                     when each began and ended, what it
                                                                     followed, and who met whom
``pair_paths``                                                       what the network would take for a
                                                                     message with nothing else on it: of
                                                                     each pair of endpoints that sent, its
                                                                     path's slowest link and latencies
``path_parts``                                                       what limits an iteration, in one
                                                                     sentence, and what its critical path is
                                                                     made of
``purposes``                                                         what communication is for: tensor,
                                                                     data, pipeline or expert parallelism,
                                                                     as its group's mesh axes say
``quantities``                                                       what a design is chosen by: measures of
                                                                     its runs, what is known before, and
                                                                     what follows from both
``requests``                                                         when the tokens of a request come: the
                                                                     first one, and each further one
``scheduling``                                                       what was decided for jobs that share a
                                                                     cluster: who waited, and what a
                                                                     scheduler told whom
``search``                                                           what came of a search: the best point
                                                                     or the Pareto front, what was tried,
                                                                     refused, or not needed
``sensitivity``                                                      what moves an answer: by how much each
                                                                     setting of a scenario changes the mean
                                                                     iteration of its jobs
``series``                                                           queues and rates over time: as tables,
                                                                     and as the columns that are written of
                                                                     a run
``spread``                                                           when bytes went over a link, where only
                                                                     their arrival is known: spread over the
                                                                     time before it
``sums``                                                             sums that may leave 64 bits: of times,
                                                                     each of which may be 53 days
``too_fast``                                                         what every run has to keep to: a link
                                                                     delivers at most its rate times the
                                                                     time
``run_schema``                                                       the schema of what is written of a run,
                                                                     with types, shapes and units: ``cosim
                                                                     schema run``
``plots/``                                                           figures for print: what runs are asked,
                                                                     as lines with units, and drawn by
                                                                     matplotlib
``report/``                                                          a report of a run as one HTML file:
                                                                     what came of it, its timeline, critical
                                                                     path, fabric and traffic
===================================================================  =======================================
"""
