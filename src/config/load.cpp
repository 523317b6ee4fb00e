#include "config/load.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "config/document.h"
#include "config/interpolate.h"
#include "config/keys.h"
#include "config/known_keys.h"
#include "config/problems.h"
#include "config/scalar.h"
#include "config/suggest.h"
#include "core/error.h"
#include "core/file.h"

namespace megalith::config {
namespace {

std::optional<std::string> read_text_value(const std::string& text) {
  return text;
}

// Puts a value into a field; false when it is not of the field's type.
struct Assign {
  const Value& value;

  bool operator()(bool* field) const { return scalar(field, read_bool); }
  bool operator()(int64_t* field) const { return scalar(field, read_int); }
  bool operator()(double* field) const { return scalar(field, read_double); }
  bool operator()(std::string* field) const { return scalar(field, read_text_value); }
  bool operator()(std::vector<int64_t>* field) const { return list(field, read_int); }
  bool operator()(std::vector<double>* field) const { return list(field, read_double); }
  bool operator()(std::vector<std::string>* field) const { return list(field, read_text_value); }
  bool operator()(const Choice& field) const {
    return value.kind == Value::Kind::scalar && field.assign(field.value, value.text);
  }

  template <class T, class Read>
  bool scalar(T* field, Read read) const {
    if (value.kind != Value::Kind::scalar) return false;
    const auto parsed = read(value.text);
    if (parsed) *field = *parsed;
    return parsed.has_value();
  }

  // One value is a list of one, as in NeMo's data_prefix.
  template <class T, class Read>
  bool list(std::vector<T>* field, Read read) const {
    if (value.kind == Value::Kind::other) return false;
    std::vector<T> result;
    for (const Value& item : value.kind == Value::Kind::list ? value.items : std::vector<Value>{value}) {
      if (item.kind != Value::Kind::scalar) return false;
      const auto parsed = read(item.text);
      if (!parsed) return false;
      result.push_back(*parsed);
    }
    *field = std::move(result);
    return true;
  }
};

// OmegaConf's mark for "to be given": the same as not given, and validate() says what is needed.
bool is_missing(const Value& value) {
  return value.kind == Value::Kind::null || (value.kind == Value::Kind::scalar && value.text == "???");
}

// Such a value could not be printed and read back.
bool holds_interpolation(const Value& value) {
  return value.text.find("${") != std::string::npos ||
         std::any_of(value.items.begin(), value.items.end(), holds_interpolation);
}

bool same_value(const Value& value, std::string_view wanted) {
  if (value.kind != Value::Kind::scalar) return false;
  if (lower_case(value.text) == lower_case(wanted)) return true;
  const auto number = read_double(value.text);
  if (number && number == read_double(wanted)) return true;
  const auto flag = read_bool(value.text);
  return flag && flag == read_bool(wanted);
}

// Of words that other frameworks have.
std::string_view why_refused(std::string_view path, std::string_view word) {
  if (path == "trainer.precision" && (word.starts_with("16") || word == "fp16"))
    return ", nor is fp16 under another name";
  if (path == "model.fp8_recipe" && (word == "blockwise" || word == "mxfp8")) return " yet";
  return "";
}

class Loader {
 public:
  Loader(const Document& document, LoadReport* report) : document_(document), resolver_(document), report_(report) {}

  Run load() {
    Run run;
    std::map<std::string_view, Field> fields;
    for (const Key& key : keys_of(run)) fields.emplace(key.path, key.field);
    for (const auto& [path, value] : document_.values()) {
      problems_.guard([&, &path = path, &value = value] {
        if (path == kVersionKey) {
          require_known_version(value);
        } else if (const auto field = fields.find(path); field != fields.end()) {
          implemented(path, value, field->second);
        } else if (const KnownKey* known = find_known(path)) {
          not_implemented(path, value, *known);
        } else {
          unknown(path, value, fields);
        }
      });
    }
    for (const Key& key : keys_of(run)) {
      for (const std::string& problem : out_of_range(key)) problems_.add("{}", problem);
    }
    for (const auto& [reason, keys] : refused_)
      problems_.add("{} {} refused: {}", keys.text, keys.count > 1 ? "are" : "is", reason);
    problems_.throw_if_any("the config");
    return run;
  }

 private:
  static void require_known_version(const Value& value) {
    const auto version = value.kind == Value::Kind::scalar ? read_int(value.text) : std::nullopt;
    if (version && *version >= 1 && *version <= kConfigVersion) return;
    user_error("{}: `{}` is '{}': this Megalith reads versions 1 to {}", value.origin, kVersionKey, display(value),
               kConfigVersion);
  }

  void implemented(const std::string& path, const Value& written, const Field& field) {
    const Value value = resolver_.resolve(path, written);
    if (holds_interpolation(value)) user_error("{}: `{}` still holds `${{` when resolved", written.origin, path);
    if (is_missing(value) || std::visit(Assign{value}, field)) return;
    if (const auto* choice = std::get_if<Choice>(&field)) {
      const std::string_view reason = why_refused(path, value.text);
      user_error("{}: `{}`={} is not supported{}: use {}", written.origin, path, display(value), reason,
                 choice->words());
    }
    user_error("{}: `{}` is '{}', which is not {}", written.origin, path, display(value), type_name(field));
  }

  void not_implemented(const std::string& path, const Value& written, const KnownKey& known) {
    if (known.fate == KnownKey::Fate::ignored) {
      if (report_) report_->ignored.push_back({path, display(written), written.origin, std::string(known.reason)});
      return;
    }
    const Value value = resolver_.resolve(path, written);
    if (is_missing(value) || (value.kind == Value::Kind::list && value.items.empty())) return;
    for (std::string_view rest = known.harmless; !rest.empty();) {
      const std::string_view wanted = rest.substr(0, rest.find('|'));
      rest.remove_prefix(std::min(rest.size(), wanted.size() + 1));
      Value same;
      same.kind = Value::Kind::scalar;
      same.text = wanted;
      same = resolver_.resolve(path, same);
      if (same_value(value, same.text)) return;
    }
    Refused& refused = refused_[known.reason];
    refused.text += fmt::format("{}{}: `{}`={}", refused.count++ > 0 ? ", " : "", written.origin, path, display(value));
  }

  void unknown(const std::string& path, const Value& value, const std::map<std::string_view, Field>& fields) {
    const auto inside = fields.lower_bound(path + ".");
    if (inside != fields.end() && inside->first.starts_with(path + ".")) {
      if (is_missing(value)) return;  // every key of the section has its default
      user_error("{}: `{}` is a section, not a value; a key in it is `{}`", value.origin, path, inside->first);
    }
    const auto nearest = nearest_key(path);
    user_error("{}: unknown key `{}`{}", value.origin, path,
               nearest ? fmt::format("; did you mean `{}`?", *nearest) : " (see --help-config)");
  }

  struct Refused {
    std::string text;  // places, keys and values
    int count = 0;
  };

  const Document& document_;
  Resolver resolver_;
  LoadReport* report_;
  Problems problems_;
  std::map<std::string_view, Refused> refused_;  // by reason
};

// True of what a run stored before there were versions: only such a text sets all of these.
bool holds_derived_as_set(const Source& source) {
  Document document;
  document.read_yaml(source.text, source.name);
  const auto sets = [&](const char* key) { return document.find(key) != nullptr; };
  return !sets(kVersionKey.data()) && sets("model.data.seq_length") && sets("model.optim.sched.max_steps") &&
         sets("model.max_position_embeddings") && sets("resilience.failpoints");
}

}  // namespace

std::string describe(const LoadReport& report) {
  std::map<std::string, std::string> keys_by_reason;
  for (const auto& ignored : report.ignored) {
    std::string& keys = keys_by_reason[ignored.reason];
    keys += (keys.empty() ? "" : ", ") + ignored.key;
  }
  std::string text;
  for (const std::string& note : report.notes) text += fmt::format("note: {}\n", note);
  for (const auto& [reason, keys] : keys_by_reason) text += fmt::format("ignored: {} ({})\n", keys, reason);
  return text;
}

Run load(std::span<const Source> sources, const std::vector<std::string>& overrides, LoadReport* report) {
  Document document;
  for (const Source& source : sources) {
    document.read_yaml(source.text, source.name);
    if (report && holds_derived_as_set(source)) {
      report->notes.push_back(fmt::format(
          "{} is of an older Megalith: what it derived counts as set; key=null derives a key anew", source.name));
    }
  }
  for (const std::string& text : overrides) document.read_override(text);
  return Loader(document, report).load();
}

Run load(const std::vector<std::filesystem::path>& files, const std::vector<std::string>& overrides,
         LoadReport* report) {
  std::vector<Source> sources;
  for (const auto& file : files) {
    std::error_code error;
    if (!std::filesystem::exists(file, error)) {
      user_error("no config file '{}'{}", file.string(), error ? ": " + error.message() : "");
    }
    if (std::filesystem::is_directory(file, error)) user_error("config file '{}' is a directory", file.string());
    try {
      sources.push_back({file.string(), read_text(file)});
    } catch (const Error& unreadable) {
      user_error("config file: {}", unreadable.what());
    }
  }
  return load(sources, overrides, report);
}

}  // namespace megalith::config
